import { readFileSync } from 'node:fs';
import { Float16Array } from '@petamoriken/float16';
import { describe, expect, it } from 'vitest';
import { type OpenOptions, openTensorFile } from '../../src/io/index.js';
import { writeNpy } from './write-npy.js';
import type { Tensor } from '../../src/problem/index.js';
import { npyBytes, npyDict } from './npy-bytes.js';
import { numpyFiles } from './reference-files.js';
import { expectRefusal, temporaryFolder } from './temporary-folder.js';
import { rawBytes } from './tensors.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const folder = temporaryFolder();

async function readOnly(content: Uint8Array, options?: OpenOptions): Promise<Tensor> {
  const file = await openTensorFile(folder.write('x.npy', content), options);
  expect([...file.entries.keys()]).toEqual(['x']);
  const tensor = await file.read('x');
  await file.close();
  return tensor;
}

const half: Tensor = {
  format: 'fp16',
  shape: [2, 3],
  data: new Float16Array([0, -0, 1.5, Infinity, NaN, -(2 ** -24)]),
};

describe('reading what numpy writes', () => {
  const cases: readonly [keyof typeof numpyFiles, Tensor, OpenOptions?][] = [
    ['half', half],
    ['halfBigEndian', { format: 'fp16', shape: [3], data: new Float16Array([1, 2.5, -65504]) }],
    [
      'singleBigEndianFortran',
      { format: 'fp32', shape: [2, 3, 2], data: Float32Array.from({ length: 12 }, (_, i) => i) },
    ],
    ['doubleScalar', { format: 'fp64', shape: [], data: Float64Array.of(-1.25) }],
    ['doubleEmpty', { format: 'fp64', shape: [0, 3], data: new Float64Array(0) }],
    ['singleVersion2', { format: 'fp32', shape: [3], data: Float32Array.of(1, 2, 3) }],
    ['singleVersion3', { format: 'fp32', shape: [3], data: Float32Array.of(1, 2, 3) }],
    [
      'bfloat16',
      { format: 'bf16', shape: [4], data: Uint16Array.of(0x3f80, 0xc000, 0x3f00, 0x7f80) },
    ],
    [
      'float8E4m3fn',
      { format: 'e4m3', shape: [4], data: Uint8Array.of(0x38, 0xc0, 0x7e, 0x7f) },
      { formats: { x: 'e4m3' } },
    ],
    ['float8E5m2', { format: 'e5m2', shape: [4], data: Uint8Array.of(0x3c, 0xc0, 0x7b, 0x7c) }],
  ];
  it.each(cases)('%s', async (key, expected, options) => {
    const { format, shape, data } = await readOnly(numpyFiles[key], options);
    expect({ format, shape }).toEqual({ format: expected.format, shape: expected.shape });
    expect(rawBytes(data)).toEqual(rawBytes(expected.data));
  });

  it('reads every range of a Fortran-order array as of its row-major form', async () => {
    const path = folder.write('x.npy', numpyFiles.singleBigEndianFortran);
    const file = await openTensorFile(path);
    for (let start = 0; start <= 12; start++)
      for (let count = 0; start + count <= 12; count++)
        expect([...(await file.readElements('x', start, count))]).toEqual(
          Array.from({ length: count }, (_, index) => start + index),
        );
    await file.close();
  });

  inTurn(
    'reads ranges of a Fortran-order array larger than a block, with gaps larger than a page',
    async () => {
      // Stored position p = row + rows·column holds the row-major position of (row, column).
      const [rows, columns] = [3000, 401];
      const stored = new Int32Array(rows * columns);
      for (let p = 0; p < stored.length; p++)
        stored[p] = (p % rows) * columns + Math.floor(p / rows);
      const content = npyBytes(
        npyDict("'<i4'", `(${rows}, ${columns})`, 'True'),
        new Uint8Array(stored.buffer),
      );
      const file = await openTensorFile(folder.write('x.npy', content), { formats: { x: 'fp32' } });
      for (const [start, count] of [
        [0, 1],
        [columns * 7 + 5, columns * 2],
        [columns * 1000, 1000],
        [rows * columns - 1, 1],
        [17, rows * columns - 40],
        [0, rows * columns],
      ] as const) {
        const data = rawBytes(await file.readElements('x', start, count));
        const expected = Int32Array.from({ length: count }, (_, index) => start + index);
        expect(Buffer.compare(data, new Uint8Array(expected.buffer))).toBe(0);
      }
      expect(await file.sha256('x')).toBe(
        await (async () => {
          const plain = npyBytes(
            npyDict("'<i4'", `(${rows * columns},)`),
            new Uint8Array(Int32Array.from({ length: rows * columns }, (_, i) => i).buffer),
          );
          const other = await openTensorFile(folder.write('y.npy', plain), {
            formats: { y: 'fp32' },
          });
          const digest = await other.sha256('y');
          await other.close();
          return digest;
        })(),
      );
      await file.close();
    },
  );

  it('lists booleans but does not read them as numbers', async () => {
    const path = folder.write('x.npy', numpyFiles.booleans);
    const file = await openTensorFile(path);
    expect(file.entries.get('x')).toMatchObject({ dtype: '|b1', format: null, byteLength: 2 });
    await expectRefusal(() => file.read('x'), path, '"x"', 'booleans');
    await file.close();
  });

  it('refuses objects and records with the way to save them', async () => {
    for (const key of ['objects', 'structured'] as const) {
      const path = folder.write('x.npy', numpyFiles[key]);
      await expectRefusal(() => openTensorFile(path), path, '"x"', 'save a plain array');
    }
  });

  it('asks for the format of opaque bytes, and says how to give it', async () => {
    const path = folder.write('x.npy', numpyFiles.float8E4m3fn);
    const file = await openTensorFile(path);
    expect(file.entries.get('x')!.format).toBeNull();
    await expectRefusal(() => file.read('x'), path, '--format x=e4m3 or --format x=e5m2');
    await expectRefusal(() => file.sha256('x'), path, '--format x=e4m3');
    await file.close();
    await expectRefusal(
      () => openTensorFile(path, { formats: { x: 'bf16' } }),
      path,
      'cannot be declared bf16',
      'e4m3 or e5m2',
    );
  });

  it.each([
    ["'<f2'", 'fp16', 2],
    ["'=f4'", 'fp32', 4],
    ["'f4'", 'fp32', 4],
    ["'|f8'", 'fp64', 8],
    ["u'<f4'", 'fp32', 4],
    ['"<f4"', 'fp32', 4],
    ["'|V2'", 'bf16', 2],
    ["'V2'", 'bf16', 2],
    ["'bfloat16'", 'bf16', 2],
    ["'float8_e4m3fn'", 'e4m3', 1],
    ["'float8_e5m2'", 'e5m2', 1],
    ["'|u1'", null, 1],
    ["'<i8'", null, 8],
    ["'<f16'", null, 16],
    ["'<c8'", null, 8],
    ["'<U3'", null, 12],
    ["'|S5'", null, 5],
    ["'<M8[ns]'", null, 8],
    ["'|V16'", null, 16],
  ])('takes descr %s as %s', async (descr, format, size) => {
    const content = npyBytes(npyDict(descr, '(2,)'), new Uint8Array(2 * size));
    const file = await openTensorFile(folder.write('x.npy', content));
    expect(file.entries.get('x')).toMatchObject({ format, byteLength: 2 * size });
    await file.close();
  });

  it.each([
    ['u1', 'e4m3', 1],
    ['i1', 'e5m2', 1],
    ['u2', 'bf16', 2],
    ['i2', 'fp16', 2],
    ['V2', 'fp16', 2],
    ['u4', 'fp32', 4],
    ['f4', 'tf32', 4],
  ] as const)('reads %s declared as %s', async (descr, format, size) => {
    const data = Uint8Array.from({ length: 3 * size }, (_, index) => index + 1);
    const content = npyBytes(npyDict(`'>${descr}'`, '(3,)'), data);
    const tensor = await readOnly(content, { formats: { x: format } });
    expect(tensor.format).toBe(format);
    const swapped = Array.from({ length: 3 }, (_, index) =>
      [...data.slice(index * size, (index + 1) * size)].reverse(),
    );
    expect([...rawBytes(tensor.data)]).toEqual(swapped.flat());
  });

  it('takes the spellings of older writers: long integers, other spacing, keys in any order', async () => {
    const spellings = [
      "{'shape': (2L, 1L), 'fortran_order': False, 'descr': '<f4'}",
      "{'descr':'<f4','fortran_order':False,'shape':(2,1)}",
      "  { 'descr' : '<f4' ,\n 'fortran_order' : False , 'shape' : ( 2 , 1 , ) , }   \n",
    ];
    for (const spelling of spellings) {
      const tensor = await readOnly(npyBytes(spelling, new Uint8Array(8)));
      expect(tensor.shape).toEqual([2, 1]);
    }
  });

  it('names the tensor after the file, told by its content', async () => {
    const path = folder.write('weights.bin', numpyFiles.half);
    const file = await openTensorFile(path);
    expect([...file.entries.keys()]).toEqual(['weights.bin']);
    await file.close();
  });
});

describe('writing npy', () => {
  it('writes numpy’s bytes', async () => {
    const written: readonly [keyof typeof numpyFiles, Tensor][] = [
      ['half', half],
      ['doubleScalar', { format: 'fp64', shape: [], data: Float64Array.of(-1.25) }],
      ['doubleEmpty', { format: 'fp64', shape: [0, 3], data: new Float64Array(0) }],
      [
        'bfloat16',
        { format: 'bf16', shape: [4], data: Uint16Array.of(0x3f80, 0xc000, 0x3f00, 0x7f80) },
      ],
    ];
    for (const [key, tensor] of written) {
      const path = folder.at('written.npy');
      await writeNpy(path, tensor);
      const bytes = new Uint8Array(readFileSync(path));
      if (key === 'half') {
        // numpy's NaN and ours may differ in sign and payload; all else is equal.
        expect(bytes.slice(0, 128 + 8)).toEqual(numpyFiles.half.slice(0, 128 + 8));
      } else expect(bytes).toEqual(numpyFiles[key]);
    }
  });

  it('marks 8-bit formats as opaque bytes', async () => {
    const path = folder.at('e5m2.npy');
    await writeNpy(path, { format: 'e5m2', shape: [2], data: Uint8Array.of(1, 2) });
    expect(readFileSync(path, 'latin1')).toContain("'descr': '|V1'");
    const file = await openTensorFile(path, { formats: { e5m2: 'e5m2' } });
    expect((await file.read('e5m2')).data).toEqual(Uint8Array.of(1, 2));
    await file.close();
  });
});
