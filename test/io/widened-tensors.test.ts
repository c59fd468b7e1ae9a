import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decodeToFloat64,
  encodeFromFloat64,
  formats,
  patternsOf,
  storageOf,
  type FormatName,
  type Tensor,
} from '../../src/formats/index.js';
import { openTensorFile, problemOutline, writeSafetensors } from '../../src/io/index.js';
import { writeNpz } from './write-npz.js';
import { filledProblem } from '../setup/problems.js';
import { refusal, runInProcess } from '../cli/run-in-process.js';
import { runOnlineKernel } from '../audit/online-kernel.js';
import { temporaryFolder } from './temporary-folder.js';

const folder = temporaryFolder();

/** The same numbers in a wider format. */
function widened({ format, shape, data }: Tensor, wider: 'fp32' | 'fp64' = 'fp32'): Tensor {
  const values = decodeToFloat64(data, formats[format]);
  return { format: wider, shape, data: encodeFromFloat64(formats[wider], values) };
}

const narrow = ['bf16', 'fp16', 'e4m3', 'e5m2', 'e2m1'] as const satisfies FormatName[];

describe('a tensor that was widened', () => {
  it('is read in its declared format, bit for bit, from any container', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...narrow),
        fc.array(fc.nat(0xffff), { minLength: 1, maxLength: 40 }),
        fc.constantFrom('fp32', 'fp64'),
        async (format, bits, wider) => {
          const width = { bf16: 0xffff, fp16: 0xffff, e4m3: 0xff, e5m2: 0xff, e2m1: 0xf }[format];
          const patterns = bits.map((x) => x & width);
          const Words = format === 'bf16' || format === 'fp16' ? Uint16Array : Uint8Array;
          const x: Tensor = {
            format,
            shape: [bits.length],
            data: storageOf(formats[format], Words.from(patterns)),
          };
          const paths = [folder.at('x.safetensors'), folder.at('x.npz')] as const;
          await writeSafetensors(paths[0], { x: widened(x, wider) }, {}, { durable: false });
          await writeNpz(paths[1], { x: widened(x, wider) });
          for (const path of paths) {
            const file = await openTensorFile(path, { formats: { x: format } });
            const read = await file.read('x');
            expect(file.entries.get('x')).toMatchObject({ format, storedAs: wider });
            expect(read.format).toBe(format);
            const values = decodeToFloat64(x.data, formats[format]);
            expect(decodeToFloat64(read.data, formats[format])).toEqual(values);
            expect(await file.readElements('x', bits.length - 1, 1)).toHaveLength(1);
            expect(patternsOf(read.data, formats[format])).toHaveLength(bits.length);
            await file.close();
          }
        },
      ),
      { numRuns: 30 },
    );
  });

  it('is refused with the first element that its format does not hold', async () => {
    const data = Float32Array.of(1, 2, 0.5, 1 + 2 ** -10, 3, 0.1);
    const path = folder.at('not.safetensors');
    await writeSafetensors(path, { x: { format: 'fp32', shape: [2, 3], data } });
    for (const [format, element] of [
      ['bf16', '1.0009765625 at [1, 0]'],
      ['fp16', '0.10000000149011612 at [1, 2]'],
      ['e2m1', '1.0009765625 at [1, 0]'],
    ] as const) {
      const file = await openTensorFile(path, { formats: { x: format } });
      await expect(file.read('x')).rejects.toThrow(
        `tensor "x": is ${element}, which ${format} does not hold; leave out --format x=${format}`,
      );
      await file.close();
    }
    const wide = { x: { format: 'fp32', shape: [1], data: Float32Array.of(1e30) } } as const;
    await writeSafetensors(path, wide);
    const file = await openTensorFile(path, { formats: { x: 'fp16' } });
    await expect(file.read('x')).rejects.toThrow('is 1.0000000150474662e+30 at [0]');
    await file.close();
  });

  const problem = filledProblem({ queries: 40, keys: 70, dim: 16 }, (i) => Math.sin(i * i));
  const { out, lse } = runOnlineKernel(problem, {});

  it('is judged by the rounding of its format, which the report says', async () => {
    const { q, k, v } = problem;
    const path = folder.at('dump.safetensors');
    const all = { q, k, v, out, lse: lse! };
    const wide = Object.fromEntries(Object.entries(all).map(([name, x]) => [name, widened(x)]));
    await writeSafetensors(path, wide);
    const declared = ['q', 'k', 'v', 'out'].flatMap((name) => ['--format', `${name}=bf16`]);
    const { status, stdout } = await runInProcess('audit', path, ...declared, '--json', '-');
    expect(status).toBe(0);
    const report = JSON.parse(stdout) as {
      verdict: { notes: string[] };
      inputs: { outputs: { name: string; format: string }[] };
      problem: { formats?: unknown };
    };
    expect(report.inputs.outputs).toMatchObject([{ name: 'out', format: 'bf16' }, { name: 'lse' }]);
    expect(report.verdict.notes.join()).toContain(
      'k, out, q and v are fp32 in the file, widened from bf16, and judged as bf16',
    );
    // The same dump as fp32 fails: the output is not as near as fp32 would be.
    expect((await runInProcess('audit', path, '--quiet')).status).toBe(1);
    // An audit in parts reads elements of a file by its dtype.
    const file = await openTensorFile(path, { formats: { q: 'bf16', k: 'bf16', v: 'bf16' } });
    expect(problemOutline(file, {})).toBeNull();
    await file.close();
    const said = await refusal('audit', path, '--format', 'lse=bf16');
    expect(said).toMatch(/tensor "lse": is \S+ at \[[\d, ]+\], which bf16 does not hold/);
    expect(said).not.toContain('\n');
    // Of another file as well.
    const [inputs, output] = [folder.at('inputs.safetensors'), folder.at('out.safetensors')];
    await writeSafetensors(inputs, { q, k, v, out });
    await writeSafetensors(output, { out: widened(out) });
    const apart = ['audit', inputs, '--output', output, '--format', 'out=bf16'];
    expect((await runInProcess(...apart)).stdout.replaceAll(/\s+/g, ' ')).toContain(
      'out is fp32 in the file, widened from bf16, and judged as bf16',
    );
  });
});
