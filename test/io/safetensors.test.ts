import { readFileSync } from 'node:fs';
import { Float16Array } from '@petamoriken/float16';
import { describe, expect, it } from 'vitest';
import { openTensorFile, writeSafetensors } from '../../src/io/index.js';
import type { Tensor } from '../../src/problem/index.js';
import { referenceSafetensors } from './reference-files.js';
import { described, safetensorsBytes } from './safetensors-bytes.js';
import { expectRefusal, temporaryFolder } from './temporary-folder.js';
import { countingTensor, rawBytes } from './tensors.js';

const folder = temporaryFolder();

/** The tensors of the reference file, by the bit patterns of their dtypes. */
const referenceTensors: Record<string, Tensor> = {
  v: { format: 'fp16', shape: [2, 2], data: new Float16Array([1, 2, 3, 4]) },
  q: { format: 'bf16', shape: [3], data: Uint16Array.of(0x3f80, 0x4000, 0x4040) },
  é: { format: 'fp32', shape: [1], data: Float32Array.of(0.5) },
  'a"\n': { format: 'fp32', shape: [], data: Float32Array.of(2.5) },
  lse: { format: 'fp64', shape: [1], data: Float64Array.of(7) },
  k: { format: 'e4m3', shape: [3], data: Uint8Array.of(0x38, 0x40, 0x44) },
  w: { format: 'e5m2', shape: [2], data: Uint8Array.of(0x3c, 0x40) },
  none: { format: 'fp16', shape: [3, 0], data: new Float16Array(0) },
};

describe('reading safetensors', () => {
  it('reads every tensor of a file of the reference implementation', async () => {
    const file = await openTensorFile(folder.write('reference.safetensors', referenceSafetensors));
    expect(file.metadata).toEqual({ scale: '0.125' });
    expect([...file.entries.keys()].sort()).toEqual(Object.keys(referenceTensors).sort());
    for (const [name, expected] of Object.entries(referenceTensors)) {
      const { format, shape, data } = await file.read(name);
      expect({ format, shape }).toEqual({ format: expected.format, shape: expected.shape });
      expect(rawBytes(data)).toEqual(rawBytes(expected.data));
      expect(data.constructor).toBe(expected.data.constructor);
    }
    expect(file.entries.get('q')).toEqual({
      name: 'q',
      dtype: 'BF16',
      format: 'bf16',
      shape: [3],
      elements: 3,
      byteLength: 6,
    });
    await file.close();
  });

  it('reads ranges of elements at unaligned offsets', async () => {
    const data = Uint8Array.from({ length: 25 }, (_, index) => index);
    const bytes = safetensorsBytes(
      { a: described('U8', [1], 0, 1), x: described('F64', [3], 1, 25) },
      data,
    );
    const file = await openTensorFile(folder.write('unaligned.safetensors', bytes));
    expect(rawBytes((await file.read('x')).data)).toEqual(data.slice(1));
    expect(rawBytes(await file.readElements('x', 1, 2))).toEqual(data.slice(9));
    expect(await file.readElements('x', 3, 0)).toHaveLength(0);
    await file.close();
  });

  it('accepts offsets in any order, unknown keys of a tensor, and a file without tensors', async () => {
    const header = {
      late: { ...described('U16', [1], 2, 4), note: { nested: [1, 2, { a: null }] } },
      early: described('BF16', [1], 0, 2),
    };
    const data = Uint8Array.of(1, 2, 3, 4);
    const file = await openTensorFile(folder.write('order', safetensorsBytes(header, data)), {
      formats: { late: 'fp16' },
    });
    expect(rawBytes((await file.read('late')).data)).toEqual(Uint8Array.of(3, 4));
    expect(rawBytes((await file.read('early')).data)).toEqual(Uint8Array.of(1, 2));
    await file.close();
    const empty = await openTensorFile(folder.write('empty', safetensorsBytes('{}  ')));
    expect(empty.entries.size).toBe(0);
    await empty.close();
  });

  it('lists every dtype of the format and reads those that are floating-point formats', async () => {
    const bits: Record<string, number> = {
      BOOL: 8,
      U8: 8,
      I8: 8,
      F8_E5M2: 8,
      F8_E4M3: 8,
      F8_E8M0: 8,
      F8_E4M3FNUZ: 8,
      F8_E5M2FNUZ: 8,
      I16: 16,
      U16: 16,
      F16: 16,
      BF16: 16,
      I32: 32,
      U32: 32,
      F32: 32,
      C64: 64,
      F64: 64,
      I64: 64,
      U64: 64,
      F4: 4,
      F6_E2M3: 6,
      F6_E3M2: 6,
    };
    const readable = new Map(
      Object.entries({
        F8_E5M2: 'e5m2',
        F8_E4M3: 'e4m3',
        F4: 'e2m1',
        F16: 'fp16',
        BF16: 'bf16',
        F32: 'fp32',
        F64: 'fp64',
      }),
    );
    let offset = 0;
    const header = Object.fromEntries(
      Object.entries(bits).map(([dtype, width]) => {
        const begin = offset;
        offset += width;
        return [dtype, described(dtype, [8], begin, offset)];
      }),
    );
    const path = folder.write('dtypes', safetensorsBytes(header, new Uint8Array(offset)));
    const file = await openTensorFile(path);
    for (const [dtype, width] of Object.entries(bits)) {
      const entry = file.entries.get(dtype)!;
      expect(entry).toMatchObject({ dtype, elements: 8, byteLength: width });
      expect(entry.format).toBe(readable.get(dtype) ?? null);
      if (entry.format === null)
        await expectRefusal(() => file.read(dtype), path, `tensor "${dtype}"`, 'holds');
      else expect((await file.read(dtype)).data).toHaveLength(8);
    }
    await file.close();
  });

  it('reads raw integers and F32 in the format the caller declares', async () => {
    const header = {
      a: described('U8', [2], 0, 2),
      b: described('I8', [2], 2, 4),
      c: described('U16', [1], 4, 6),
      d: described('I16', [1], 6, 8),
      e: described('F32', [1], 8, 12),
    };
    const path = folder.write('declared', safetensorsBytes(header, new Uint8Array(12)));
    const file = await openTensorFile(path, {
      formats: { a: 'e4m3', b: 'e5m2', c: 'bf16', d: 'fp16', e: 'tf32' },
    });
    const formats = [...file.entries.values()].map(({ format }) => format);
    expect(formats).toEqual(['e4m3', 'e5m2', 'bf16', 'fp16', 'tf32']);
    await file.close();
    const undeclared = await openTensorFile(path);
    await expectRefusal(() => undeclared.read('a'), path, '"a"', '--format a=e4m3');
    await undeclared.close();
    await expectRefusal(
      () => openTensorFile(path, { formats: { e: 'fp64' } }),
      path,
      '"e"',
      'cannot be declared fp64',
      'fp32 or tf32',
    );
    await expectRefusal(
      () => openTensorFile(path, { formats: { z: 'bf16' } }),
      path,
      '"z"',
      'no such tensor',
      '"a"',
    );
    await expectRefusal(
      () => openTensorFile(path, { formats: { a: 'fp8' as 'e4m3' } }),
      path,
      '"fp8"',
      'e4m3',
    );
  });

  it('names the tensors there are, and the nearest one, when one is missing', async () => {
    const path = folder.write('missing', referenceSafetensors);
    const file = await openTensorFile(path);
    await expectRefusal(() => file.read('LSE'), path, 'no tensor "LSE"', 'did you mean "lse"?');
    await expectRefusal(() => file.read('nonne'), 'did you mean "none"?', '"q"', '"lse"');
    await expectRefusal(() => file.read('gradient'), /no tensor "gradient"; it holds/);
    await expectRefusal(() => file.read('__proto__'), 'no tensor "__proto__"');
    await expectRefusal(() => file.readElements('q', 2, 2), path, '"q"', 'stay within its 3');
    await expectRefusal(() => file.readElements('q', -1, 1), '"q"', 'stay within');
    await expectRefusal(() => file.readElements('q', 0.5, 1), '"q"', 'stay within');
    await expectRefusal(() => file.readElements('q', 0, NaN), '"q"', 'stay within');
    await file.close();
    await file.close();
    await expectRefusal(() => file.read('q'), path, 'is closed');
  });
});

describe('writing safetensors', () => {
  it('writes the reference implementation’s bytes', async () => {
    const path = folder.at('written.safetensors');
    await writeSafetensors(path, referenceTensors, { scale: '0.125' });
    expect(new Uint8Array(readFileSync(path))).toEqual(referenceSafetensors);
    await writeSafetensors(path, new Map(Object.entries(referenceTensors).reverse()), {
      scale: '0.125',
    });
    expect(new Uint8Array(readFileSync(path))).toEqual(referenceSafetensors);
  });

  it('begins the data at a multiple of 8 bytes and every tensor at one of its element size', async () => {
    const path = folder.at('aligned.safetensors');
    for (const name of ['a', 'ab', 'abc', 'abcd', 'abcde', 'abcdef', 'abcdefg', 'abcdefgh']) {
      await writeSafetensors(path, {
        [name]: countingTensor('e4m3', [3]),
        q: countingTensor('fp16', [3]),
        l: countingTensor('fp64', [1]),
      });
      const bytes = readFileSync(path);
      const length = Number(bytes.readBigUInt64LE(0));
      expect(length % 8).toBe(0);
      const header = JSON.parse(bytes.toString('utf8', 8, 8 + length)) as Record<
        string,
        { data_offsets: number[] }
      >;
      expect(header['l'].data_offsets).toEqual([0, 8]);
      expect(header['q'].data_offsets).toEqual([8, 14]);
      expect(header[name].data_offsets).toEqual([14, 17]);
    }
  });

  it('keeps tf32 through a note in the metadata', async () => {
    const path = folder.at('tf32.safetensors');
    const tf32 = countingTensor('tf32', [2]);
    await writeSafetensors(path, { q: tf32, k: countingTensor('fp32', [2]) }, { note: 'x' });
    const file = await openTensorFile(path);
    expect(file.metadata).toEqual({ note: 'x', 'format.q': 'tf32' });
    expect(file.entries.get('q')).toMatchObject({ dtype: 'F32', format: 'tf32' });
    expect(file.entries.get('k')).toMatchObject({ dtype: 'F32', format: 'fp32' });
    await file.close();
    const overridden = await openTensorFile(path, { formats: { q: 'fp32' } });
    expect(overridden.entries.get('q')!.format).toBe('fp32');
    await overridden.close();
    await expectRefusal(
      () => writeSafetensors(path, { q: tf32 }, { 'format.q': 'fp32' }),
      '"format.q"',
    );
  });

  it('ignores a format note that does not fit the dtype', async () => {
    const header = {
      __metadata__: { 'format.a': 'bf16', 'format.b': 'nonsense' },
      a: described('F32', [1], 0, 4),
      b: described('F16', [1], 4, 6),
    };
    const file = await openTensorFile(
      folder.write('notes', safetensorsBytes(header, new Uint8Array(6))),
    );
    expect(file.entries.get('a')!.format).toBe('fp32');
    expect(file.entries.get('b')!.format).toBe('fp16');
    await file.close();
  });

  it('refuses what cannot be written, and leaves the file as it was', async () => {
    const path = folder.write('kept.safetensors', 'before');
    const data = Float32Array.of(1, 2);
    const wrong: readonly [string, Record<string, Tensor>, string, object?][] = [
      ['"q"', { q: { format: 'fp32', shape: [3], data } }, 'needs 3 elements'],
      ['"q"', { q: { format: 'fp16', shape: [2], data } }, 'Float16Array'],
      ['"q"', { q: { format: 'bf16', shape: [2], data } }, 'Uint16Array'],
      ['"q"', { q: { format: 'fp32', shape: [-2], data } }, 'non-negative'],
      ['"q"', { q: { format: 'fp32', shape: [NaN], data } }, 'non-negative'],
      ['"q"', { q: { format: 'half' as 'fp16', shape: [2], data } }, '"half"'],
      ['"q"', { q: { format: 'fp32', shape: Array<number>(33).fill(1), data } }, 'rank 33'],
      ['"__metadata__"', { __metadata__: { format: 'fp32', shape: [2], data } }, 'reserves'],
      ['\\ud800', { '\ud800': { format: 'fp32', shape: [2], data } }, 'surrogate'],
      ['"n"', { q: { format: 'fp32', shape: [2], data } }, 'no string', { n: 1 }],
    ];
    for (const [name, tensors, what, metadata = {}] of wrong)
      await expectRefusal(
        () => writeSafetensors(path, tensors, metadata as Record<string, string>),
        name,
        what,
      );
    expect(readFileSync(path, 'utf8')).toBe('before');
  });
});
