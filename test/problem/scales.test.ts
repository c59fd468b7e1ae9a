import { describe, expect, it } from 'vitest';
import { decodeTensor, decodeToFloat64, formats, type Tensor } from '../../src/formats/index.js';
import {
  attachScales,
  problemFeatures,
  scaleTensors,
  type GivenScales,
  type Problem,
} from '../../src/problem/index.js';

const [batch, heads, kvHeads, queries, keys, dim] = [2, 6, 2, 5, 70, 8] as const;

function codes(shape: readonly number[]): Tensor {
  const data = Uint8Array.from(
    { length: shape.reduce((product, size) => product * size, 1) },
    (_, i) => (i * 37) % 120,
  );
  return { format: 'e4m3', shape, data };
}

const settings = { scale: 1, causal: false, window: null, softcap: null };
const plain: Problem = {
  q: codes([batch, heads, queries, dim]),
  k: codes([batch, kvHeads, keys, dim]),
  v: codes([batch, kvHeads, keys, dim]),
  ...settings,
};

/** Factors that tell each other apart. */
function factors(...shape: number[]): Tensor {
  const count = shape.reduce((product, size) => product * size, 1);
  return {
    format: 'fp32',
    shape,
    data: Float32Array.from({ length: count }, (_, i) => 1 + i / 64),
  };
}

/** The factor of every row of a tensor, [batch, heads, rows]. */
function rowFactors(problem: Problem, name: 'q' | 'k' | 'v'): number[] {
  const tensor = problem[name];
  const whole = decodeTensor(tensor);
  const raw = decodeToFloat64(tensor.data, formats[tensor.format]);
  const width = tensor.shape.at(-1) ?? 0;
  return Array.from({ length: raw.length / width }, (_, row) => {
    const at = row * width + raw.subarray(row * width, (row + 1) * width).findIndex((x) => x !== 0);
    return (whole[at] ?? NaN) / (raw[at] ?? NaN);
  });
}

function repeated(values: readonly number[], times: number): number[] {
  return values.flatMap((x) => Array.from({ length: times }, () => x));
}

describe('scales as files have them', () => {
  it('a number, by head, by batch and head, of the heads of K too', () => {
    const eighth = (n: number) => Array.from({ length: n }, (_, i) => 1 + i / 64);
    const q = (descale: Tensor) => rowFactors(attachScales(plain, { q: { descale } }), 'q');
    expect(q(factors())).toEqual(repeated([1], batch * heads * queries));
    expect(q(factors(heads))).toEqual([...repeated(eighth(6), 5), ...repeated(eighth(6), 5)]);
    expect(q(factors(batch, heads))).toEqual(repeated(eighth(12), queries));
    expect(q(factors(batch, kvHeads))).toEqual(repeated(eighth(4), 3 * queries));
  });

  it('by block of rows, the last shorter', () => {
    const problem = attachScales(plain, {
      k: { descale: factors(batch, kvHeads, 3), rowsPerBlock: 32 },
    });
    const expected = Array.from({ length: batch * kvHeads * keys }, (_, row) => {
      const head = Math.floor(row / keys);
      return 1 + (head * 3 + Math.floor((row % keys) / 32)) / 64;
    });
    expect(rowFactors(problem, 'k')).toEqual(expected);
  });

  it('by block of elements, with a global factor', () => {
    const problem = attachScales(plain, {
      v: { block_scale: factors(batch, kvHeads, keys, 2), global_scale: factors() },
    });
    const raw = decodeToFloat64(plain.v.data, formats.e4m3);
    expect(decodeTensor(problem.v)).toEqual(raw.map((x, i) => x * (1 + Math.floor(i / 4) / 64)));
    const byKeys = attachScales(plain, { v: { block_scale: factors(batch, kvHeads, 3, dim) } });
    expect(decodeTensor(byKeys.v)).toEqual(
      raw.map((x, i) => {
        const [row, column] = [Math.floor(i / dim), i % dim];
        const block = Math.floor(row / keys) * 3 + Math.floor((row % keys) / 32);
        return x * (1 + (block * dim + column) / 64);
      }),
    );
  });

  it('of packed sequences each has its own', () => {
    const lengths = [3, 0, 7];
    const packed: Problem = {
      ...settings,
      q: codes([1, 4, 10, dim]),
      k: codes([1, 2, 10, dim]),
      v: codes([1, 2, 10, dim]),
      sequences: lengths.map((length, i) => {
        const first = lengths.slice(0, i).reduce((sum, n) => sum + n, 0);
        return { firstQuery: first, queries: length, firstKey: first, keys: length };
      }),
    };
    const problem = attachScales(packed, { q: { descale: factors(3, 2) } });
    const ofSequence = (sequence: number, head: number) => 1 + (sequence * 2 + head) / 64;
    const expected = [0, 0, 1, 1].flatMap((kv) => [
      ...repeated([ofSequence(0, kv)], 3),
      ...repeated([ofSequence(2, kv)], 7),
    ]);
    expect(rowFactors(problem, 'q')).toEqual(expected);
    const again = attachScales(packed, { q: { descale: scaleTensors(problem).tensors.q_descale } });
    expect(rowFactors(again, 'q')).toEqual(expected);
    const byBlock = attachScales(packed, {
      k: { descale: factors(3, 2, 2), rowsPerBlock: 4 },
    });
    expect(rowFactors(byBlock, 'k').slice(0, 10)).toEqual([
      ...repeated([1], 3),
      ...repeated([1 + 8 / 64], 4),
      ...repeated([1 + 9 / 64], 3),
    ]);
  });

  const forms: readonly GivenScales[] = [
    { descale: factors() },
    { descale: factors(batch, kvHeads) },
    { descale: factors(batch, kvHeads, 3), rowsPerBlock: 30 },
    { descale: factors(1, 1, 1, dim) },
    { block_scale: factors(batch, kvHeads, 5, 2), global_scale: factors(1) },
  ];
  it.each(forms.map((form) => [form] as const))('what is noted gives the same back: %o', (form) => {
    const problem = attachScales(plain, { v: form });
    const { tensors, metadata } = scaleTensors(problem);
    const again = attachScales(plain, {
      v: {
        descale: tensors.v_descale,
        block_scale: tensors.v_block_scale,
        global_scale: tensors.v_global_scale,
        rowsPerBlock:
          metadata.v_descale_block === undefined ? undefined : Number(metadata.v_descale_block),
      },
    });
    expect(decodeTensor(again.v)).toEqual(decodeTensor(problem.v));
    expect(problemFeatures(problem)).toEqual(['scales']);
  });

  const tensor = (values: readonly number[]): Tensor => ({
    format: 'fp32',
    shape: [values.length],
    data: Float32Array.from(values),
  });
  const wrong: readonly (readonly [GivenScales, string])[] = [
    [{ descale: tensor([0]) }, 'k_descale has 0 at element 0; give positive finite factors'],
    [{ descale: tensor([1, -1]) }, 'k_descale has -1 at element 1'],
    [{ descale: tensor([NaN]) }, 'k_descale has NaN at element 0'],
    [{ global_scale: tensor([Infinity]) }, 'k_global_scale has Infinity at element 0'],
    [{ block_scale: { ...factors(2, 2, 70, 1), data: new Float32Array(280).fill(-1) } }, '-1 at'],
    [{ descale: tensor([1, 2, 3]) }, 'k_descale has shape [3]; give a number, [2] or [2, 2]'],
    [{ descale: factors(2, 2, 3) }, 'k_descale_block rows a factor'],
    [{ descale: factors(2, 2, 4), rowsPerBlock: 32 }, 'give [2, 2, 3], a factor for each 32 rows'],
    [{ block_scale: factors(2, 2, 70, 3) }, 'k_block_scale has shape [2, 2, 70, 3]'],
  ];
  it.each(wrong)('refuses %o', (given, message) => {
    expect(() => attachScales(plain, { k: given })).toThrow(message);
  });
});
