import { writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../oracles/index.js';
import { decodeTensor, formats, decodeToFloat64, type Tensor } from '../../src/formats/index.js';
import { declaredFormats, problemSettings } from '../../src/cli/options/settings.js';
import {
  namesRead,
  openTensorFile,
  problemOutline,
  readProblem,
  unusedInputs,
  writeProblem,
  writeSafetensors,
} from '../../src/io/index.js';
import { writeNpz } from './write-npz.js';
import type { StoredTensor } from '../../src/problem/index.js';
import { temporaryFolder } from './temporary-folder.js';

const folder = temporaryFolder();

function bytes(count: number, most: number): Uint8Array {
  let state = 7;
  return Uint8Array.from({ length: count }, () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 16) % most;
  });
}

/** Inputs of 4 bits with a factor of e4m3 for each 16, and one of fp32 for all. */
function nvfp4(shape: readonly number[]): Record<'element' | 'block' | 'global', Tensor> {
  const count = shape.reduce((product, size) => product * size, 1);
  const blocks = [...shape.slice(0, -1), Math.ceil((shape.at(-1) ?? 0) / 16)];
  const factors = bytes(count / 16, 0x60).map((bits) => bits + 1);
  return {
    element: { format: 'e2m1', shape, data: bytes(count, 16) },
    block: { format: 'e4m3', shape: blocks, data: factors },
    global: { format: 'fp32', shape: [1], data: Float32Array.of(0.0123) },
  };
}

describe('inputs with block scales', () => {
  it('of NVFP4 are read, computed with and written back, each number exact', async () => {
    const parts = { q: nvfp4([1, 2, 3, 32]), k: nvfp4([1, 1, 40, 32]), v: nvfp4([1, 1, 40, 48]) };
    const tensors: Record<string, StoredTensor> = {};
    for (const [name, { element, block, global }] of Object.entries(parts)) {
      tensors[name] = element;
      tensors[`${name}_block_scale`] = block;
      tensors[`${name}_global_scale`] = global;
    }
    const path = folder.at('nvfp4.safetensors');
    await writeSafetensors(path, tensors);
    const file = await openTensorFile(path);
    expect(file.entries.get('q')).toMatchObject({ dtype: 'F4', format: 'e2m1', byteLength: 96 });
    expect(await file.readElements('v', 3, 5)).toEqual(parts.v.element.data.slice(3, 8));
    const problem = await readProblem(file);
    for (const name of ['q', 'k', 'v'] as const) {
      const { element, block } = parts[name];
      const factors = decodeToFloat64(block.data, formats.e4m3);
      expect(decodeTensor(problem[name])).toEqual(
        decodeToFloat64(element.data, formats.e2m1).map(
          (x, i) => x * (factors[Math.floor(i / 16)] ?? NaN) * Math.fround(0.0123),
        ),
      );
    }
    const again = folder.at('again.safetensors');
    await writeProblem(again, problem);
    const copy = await openTensorFile(again);
    expect((await readProblem(copy)).q).toEqual(problem.q);
    expect(await copy.sha256('q')).toBe(await file.sha256('q'));
    expect(attentionOracle(problem).quantities.lse.values.every(Number.isFinite)).toBe(true);
    await file.close();
    await copy.close();
  });

  it('of MX have exponents for factors, of which 255 is none', async () => {
    const shape = [1, 1, 2, 64];
    const element: Tensor = { format: 'e5m2', shape, data: bytes(128, 0x7c) };
    const write = async (name: string, exponents: readonly number[]) => {
      const path = folder.at(name);
      await writeSafetensors(path, {
        q: element,
        k: element,
        v: element,
        k_block_scale: { shape: [1, 1, 2, 2], data: Int32Array.from(exponents) },
      });
      return openTensorFile(path);
    };
    const file = await write('mx.safetensors', [127, 0, 254, 130]);
    const { k } = await readProblem(file);
    const raw = decodeToFloat64(element.data, formats.e5m2);
    const factors = [1, 2 ** -127, 2 ** 127, 8];
    expect(decodeTensor(k)).toEqual(raw.map((x, i) => x * (factors[Math.floor(i / 32)] ?? NaN)));
    await file.close();
    const wrong = await write('wrong.safetensors', [127, 255, 0, 1]);
    await expect(readProblem(wrong)).rejects.toThrow('k_block_scale has NaN at element 1');
    await wrong.close();
  });

  it('are packed two in a byte, the first low, and an odd number of them is refused', async () => {
    const path = folder.at('packed.safetensors');
    const data = Uint8Array.of(1, 2, 3, 15);
    await writeSafetensors(path, { x: { format: 'e2m1', shape: [4], data } });
    const { readFile } = await import('node:fs/promises');
    expect([...(await readFile(path)).subarray(-2)]).toEqual([0x21, 0xf3]);
    await expect(
      writeSafetensors(path, { x: { format: 'e2m1', shape: [3], data: data.slice(1) } }),
    ).rejects.toThrow('do not fill whole bytes');
  });
});

describe('elements of 4 bits', () => {
  const rows = (...shape: number[]): Tensor => ({
    format: 'e2m1',
    shape,
    data: bytes(
      shape.reduce((product, size) => product * size, 1),
      16,
    ),
  });
  const tensors = { q: rows(2, 3, 6), k: rows(2, 5, 6), v: rows(2, 5, 4) };
  /** Two elements in a byte, the first low, as PyTorch has them. */
  const packedBytes = ({ shape, data }: Tensor) => ({
    shape: [...shape.slice(0, -1), shape.at(-1)! / 2],
    data: Uint8Array.from(
      { length: data.length / 2 },
      (_, i) => Number(data[2 * i]) + 16 * Number(data[2 * i + 1]),
    ),
  });
  const declared = declaredFormats({ format: ['q=e2m1x2', 'k=e2m1x2', 'v=e2m1x2'] });

  it('are read from bytes that hold two, in any container', async () => {
    const packed = Object.fromEntries(
      Object.entries(tensors).map(([name, tensor]) => [name, packedBytes(tensor)]),
    );
    // Bytes of 8 bits, as safetensors and npy call them.
    const path = folder.at('bytes.safetensors');
    const header = JSON.stringify(
      Object.fromEntries(
        Object.entries(packed).map(([name, { shape, data }], i) => {
          const begin = Object.values(packed)
            .slice(0, i)
            .reduce((sum, one) => sum + one.data.length, 0);
          return [name, { dtype: 'U8', shape, data_offsets: [begin, begin + data.length] }];
        }),
      ),
    );
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(header.length));
    const contents = Object.values(packed).map(({ data }) => data);
    await writeFile(path, Buffer.concat([length, Buffer.from(header), ...contents]));
    const file = await openTensorFile(path, { formats: declared });
    const { q, k, v } = await readProblem(file);
    expect({ q, k, v }).toEqual(tensors);
    expect(await file.readElements('k', 7, 4)).toEqual(tensors.k.data.slice(7, 11));
    // The same elements have the same hash, however they are stored.
    const unpacked = folder.at('unpacked.safetensors');
    await writeSafetensors(unpacked, tensors);
    const plain = await openTensorFile(unpacked);
    expect(await file.sha256('v')).toBe(await plain.sha256('v'));
    await file.close();
    await plain.close();
    const npz = folder.at('bytes.npz');
    await writeNpz(
      npz,
      Object.fromEntries(
        Object.entries(packed).map(([name, { shape, data }]) => [
          name,
          { format: 'e4m3' as const, shape, data },
        ]),
      ),
    );
    const zipped = await openTensorFile(npz, { formats: declared });
    expect((await readProblem(zipped)).v).toEqual(tensors.v);
    await zipped.close();
    expect(() => declaredFormats({ format: ['q=e2m1x3'] })).toThrow(/e2m1, e2m1x2$/);
  });

  it('are the same with heads behind rows', async () => {
    const path = folder.at('bshd.safetensors');
    const turned = ({ format, shape, data }: Tensor): Tensor => {
      const [heads, count, dim] = shape as [number, number, number];
      const values = Uint8Array.from({ length: data.length }, (_, i) => {
        const [row, head, column] = [
          Math.floor(i / dim / heads),
          Math.floor(i / dim) % heads,
          i % dim,
        ];
        return Number(data[(head * count + row) * dim + column]);
      });
      return { format, shape: [count, heads, dim], data: values };
    };
    const { q, k, v } = tensors;
    await writeSafetensors(path, { q: turned(q), k: turned(k), v: turned(v) }, { layout: 'bshd' });
    const file = await openTensorFile(path);
    const problem = await readProblem(file);
    expect([problem.q, problem.k, problem.v]).toEqual([q, k, v]);
    await file.close();
  });
});

describe('descales that are given', () => {
  const shape = [1, 2, 4, 8];
  const element: Tensor = { format: 'e4m3', shape, data: bytes(64, 0x7c) };
  const factors = (...values: number[]): Tensor => ({
    format: 'fp32',
    shape: [values.length],
    data: Float32Array.from(values),
  });
  const own = { q: element, k: element, v: element, q_descale: factors(3, 5), mine: factors(2, 7) };
  /** The factor of the first element of each head. */
  const ofHeads = (tensor: Tensor) => {
    const values = decodeTensor(tensor);
    const plain = decodeToFloat64(tensor.data, formats[tensor.format]);
    return [0, 1].map((head) => values[32 * head]! / plain[32 * head]!);
  };

  it('take the place of those of the file: a number, its own tensor, or that of another', async () => {
    const [path, other] = [folder.at('own.safetensors'), folder.at('other.safetensors')];
    await writeSafetensors(path, own, { k_descale: '9' });
    await writeSafetensors(other, { v_descale: factors(11, 13), else: factors(1, 1) });
    const file = await openTensorFile(path);
    const given = problemSettings({ qDescale: ':mine', kDescale: '0.5', vDescale: other });
    const { q, k, v } = await readProblem(file, given);
    expect([q, k, v].map(ofHeads)).toEqual([
      [2, 7],
      [0.5, 0.5],
      [11, 13],
    ]);
    const without = await readProblem(file);
    expect([without.q, without.k, without.v].map(ofHeads)).toEqual([
      [3, 5],
      [9, 9],
      [1, 1],
    ]);
    // What an option replaces is not used, and is said; what it names is.
    expect(unusedInputs(file, namesRead(file, given))).toMatchObject({
      ofAttention: ['q_descale'],
      unknown: [],
    });
    expect(unusedInputs(file, namesRead(file, {}))).toMatchObject({ unknown: ['mine'] });
    // Its elements are not those of q, k and v alone.
    expect(problemOutline(file, problemSettings({ qDescale: '2' }))).toBeNull();
    for (const [text, message] of [
      ['0', /--q-descale is "0"; give a positive finite number/],
      ['-1', /--q-descale is "-1"; give a positive finite number/],
      ['Infinity', /give a positive finite number/],
      [':none', /none/],
      ['missing.npy', /missing\.npy/],
    ] as const)
      await expect(readProblem(file, problemSettings({ qDescale: text }))).rejects.toThrow(message);
    await file.close();
  });
});
