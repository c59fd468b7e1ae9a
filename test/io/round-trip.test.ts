import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FormatName } from '../../src/formats/index.js';
import { openTensorFile, type TensorFile, writeSafetensors } from '../../src/io/index.js';
import { writeNpy } from './write-npy.js';
import { writeNpz } from './write-npz.js';
import type { Tensor } from '../../src/problem/index.js';
import { temporaryFolder } from './temporary-folder.js';
import { scaled } from '../setup/effort.js';
import { countingTensor, formatNames, rawBytes, tensorOver, widths } from './tensors.js';

const folder = temporaryFolder();

type Tensors = Readonly<Record<string, Tensor>>;

/** The formats of the tensors, declared where the container's dtype does not tell them. */
function declarations(tensors: Tensors): Record<string, FormatName> {
  return Object.fromEntries(Object.entries(tensors).map(([name, { format }]) => [name, format]));
}

async function writeFolder(path: string, tensors: Tensors): Promise<void> {
  mkdirSync(path, { recursive: true });
  for (const [name, tensor] of Object.entries(tensors))
    await writeNpy(join(path, `${name}.npy`), tensor);
}

const containers: readonly (readonly [
  container: string,
  write: (path: string, tensors: Tensors) => Promise<void>,
  declared: boolean,
])[] = [
  ['safetensors', (path, tensors) => writeSafetensors(path, tensors), false],
  ['npz', writeNpz, true],
  ['folder', writeFolder, true],
];

async function expectEqual(file: TensorFile, tensors: Tensors): Promise<void> {
  expect([...file.entries.keys()].sort()).toEqual(Object.keys(tensors).sort());
  for (const [name, { format, shape, data }] of Object.entries(tensors)) {
    const read = await file.read(name);
    expect([read.format, read.shape]).toEqual([format, shape]);
    expect(read.data).toHaveLength(data.length);
    // Bits and not values: NaN payloads and the sign of zero must come back.
    expect(Buffer.compare(rawBytes(read.data), rawBytes(data))).toBe(0);
    const [start, end] = [Math.floor(data.length / 3), Math.ceil((data.length * 2) / 3)];
    const part = rawBytes(await file.readElements(name, start, end - start));
    const width = widths[format];
    expect(Buffer.compare(part, rawBytes(data).slice(start * width, end * width))).toBe(0);
  }
}

describe.each(containers)('%s', (container, write, declared) => {
  it.each(formatNames)('keeps %s tensors of every rank, empty ones and scalars', async (format) => {
    const shapes = [[], [0], [1], [5], [2, 3], [0, 3], [3, 0, 2], [1, 1, 1, 1], [2, 1, 3, 2]];
    shapes.push(Array<number>(32).fill(1));
    const tensors = Object.fromEntries(
      shapes.map((shape, index) => [`tensor${index}`, countingTensor(format, shape)]),
    );
    const path = folder.at(`${container}-${format}`);
    await write(path, tensors);
    const file = await openTensorFile(
      path,
      declared ? { formats: declarations(tensors) } : undefined,
    );
    await expectEqual(file, tensors);
    await file.close();
  });

  it('gives back the bits of any tensors', async () => {
    const tensor = fc
      .record({
        format: fc.constantFrom(...formatNames),
        shape: fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 5 }),
      })
      .chain(({ format, shape }) => {
        const length = shape.reduce((product, d) => product * d, 1) * widths[format];
        return fc
          .uint8Array({ minLength: length, maxLength: length })
          .map((bytes) => tensorOver(format, shape, bytes));
      });
    const names = container === 'folder' ? /^[a-zé0-9_]{1,8}$/ : /^[a-zé./ 0-9"_]{1,8}$/;
    const name = fc.stringMatching(names).filter((text) => !/^\/|(^|\/)\.\.(\/|$)/.test(text));
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.dictionary(name, tensor, { minKeys: 1, maxKeys: 4 }), async (tensors) => {
        const path = folder.at(`${container}-${run++}`);
        await write(path, tensors);
        const file = await openTensorFile(
          path,
          declared ? { formats: declarations(tensors) } : undefined,
        );
        try {
          await expectEqual(file, tensors);
        } finally {
          await file.close();
        }
      }),
      { numRuns: scaled(20) },
    );
  });
});

it('sha256 of a tensor is that of its elements, in whichever container', async () => {
  const tensors = { q: countingTensor('bf16', [300, 1001]) };
  const digests = new Set<string>();
  for (const [container, write] of containers) {
    const path = folder.at(`sha-${container}`);
    await write(path, tensors);
    const file = await openTensorFile(path);
    digests.add(await file.sha256('q'));
    await file.close();
  }
  const { createHash } = await import('node:crypto');
  const expected = createHash('sha256').update(rawBytes(tensors.q.data)).digest('hex');
  expect([...digests]).toEqual([expected]);
});

it('metadata of any strings comes back from safetensors', async () => {
  const path = folder.at('metadata.safetensors');
  // Any code points but surrogates, as fast-check's unit 'binary', which takes seconds to be made.
  const codePoint = fc.oneof(
    fc.integer({ min: 0, max: 0x7f }),
    fc.integer({ min: 0, max: 0xd7ff }),
    fc.integer({ min: 0xe000, max: 0x10ffff }),
  );
  const text = fc.string({ unit: codePoint.map((x) => String.fromCodePoint(x)), maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(fc.dictionary(text, text, { maxKeys: 5 }), async (metadata) => {
      await writeSafetensors(path, {}, metadata);
      const file = await openTensorFile(path);
      expect({ ...file.metadata }).toEqual({ ...metadata });
      await file.close();
    }),
    { numRuns: scaled(20) },
  );
});
