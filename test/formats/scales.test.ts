import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../oracles/index.js';
import {
  decodeTensor,
  decodeToFloat64,
  encodeFromFloat64,
  formats,
  scalesOfRows,
  sliceRows,
  tensorPrecision,
  tensorScales,
  type ScaleFactors,
  type Tensor,
} from '../../src/formats/index.js';
import { problemFeatures, type Problem } from '../../src/problem/index.js';
import { scaled } from '../setup/effort.js';

const size = fc.integer({ min: 1, max: 5 });

/** fp32 numbers of any significand and a moderate exponent. */
const factor = fc
  .tuple(fc.double({ min: 1, max: 2, noNaN: true }), fc.integer({ min: -40, max: 40 }))
  .map(([significand, exponent]) => Math.fround(significand) * 2 ** exponent);

function factorsFor(shape: readonly number[]): fc.Arbitrary<ScaleFactors> {
  return fc.tuple(...shape.map((axis) => fc.integer({ min: 1, max: axis + 1 }))).chain((blocks) => {
    const counts = shape.map((axis, i) => Math.ceil(axis / (blocks[i] ?? 1)));
    const count = counts.reduce((product, n) => product * n, 1);
    return fc.array(factor, { minLength: count, maxLength: count }).map((values) => ({
      name: 'descale' as const,
      format: 'fp32' as const,
      values: Float64Array.from(values),
      shape: counts,
      blocks,
    }));
  });
}

const scaledTensor = fc.tuple(size, size, size, size).chain((shape) => {
  const count = shape.reduce((product, n) => product * n, 1);
  return fc
    .tuple(
      fc.array(fc.integer({ min: 0, max: 255 }), { minLength: count, maxLength: count }),
      fc.array(factorsFor(shape), { minLength: 1, maxLength: 2 }),
    )
    .map(([patterns, factors]): Tensor => {
      const tensor = { format: 'e4m3', shape, data: Uint8Array.from(patterns) } as const;
      return { ...tensor, scales: tensorScales(tensor, factors.slice(0, 2)) };
    });
});

/** The element times its factors, place by place. */
function definition({ shape, scales, data, format }: Tensor): Float64Array {
  const raw = decodeToFloat64(data, formats[format]);
  return raw.map((x, i) => {
    const place: number[] = [];
    let rest = i;
    for (const axis of shape.toReversed()) {
      place.unshift(rest % axis);
      rest = Math.floor(rest / axis);
    }
    let product = x;
    for (const { values, shape: counts, blocks } of scales?.factors ?? []) {
      const at = place.reduce(
        (index, p, axis) => index * (counts[axis] ?? 0) + Math.floor(p / (blocks[axis] ?? 1)),
        0,
      );
      product *= values[at] ?? NaN;
    }
    return product;
  });
}

describe('elements times factors', () => {
  it('every element is multiplied by the factor of its block, and any stretch reads alike', () => {
    fc.assert(
      fc.property(scaledTensor, fc.nat(), fc.nat(), (tensor, a, b) => {
        const all = definition(tensor);
        expect(decodeTensor(tensor)).toEqual(all);
        const [first, end] = [a % (all.length + 1), b % (all.length + 1)].sort((x, y) => x - y);
        expect(decodeTensor(tensor, first, end)).toEqual(all.slice(first, end));
      }),
      { numRuns: scaled(200) },
    );
  });

  it('products are exact: a multiple of the unit that the precision gives', () => {
    fc.assert(
      fc.property(scaledTensor, (tensor) => {
        const precision = tensorPrecision(tensor);
        for (const x of decodeTensor(tensor)) {
          if (!Number.isFinite(x) || x === 0) continue;
          const unit = 2 ** (Math.floor(Math.log2(Math.abs(x))) + 1 - precision);
          expect(Number.isInteger(x / unit)).toBe(true);
        }
      }),
      { numRuns: scaled(100) },
    );
  });

  it('rows picked in any order keep their numbers', () => {
    fc.assert(
      fc.property(
        scaledTensor,
        fc.array(fc.nat(), { minLength: 1, maxLength: 6 }),
        (tensor, picks) => {
          const width = tensor.shape.at(-1) ?? 0;
          const count = tensor.data.length / width;
          const rows = picks.map((pick) => pick % count);
          const whole = decodeTensor(tensor);
          const data = Uint8Array.from(
            rows.flatMap((row) => [...tensor.data.subarray(row * width, (row + 1) * width)]),
          );
          const scales = scalesOfRows(tensor, [rows.length], (i) => rows[i] ?? 0);
          const picked: Tensor = {
            format: 'e4m3',
            shape: [rows.length, width],
            data,
            ...(scales && { scales }),
          };
          expect(decodeTensor(picked)).toEqual(
            Float64Array.from(
              rows.flatMap((row) => [...whole.subarray(row * width, (row + 1) * width)]),
            ),
          );
          const slice = sliceRows(tensor, rows[0] ?? 0, 1);
          expect(decodeTensor(slice)).toEqual(decodeTensor(picked).subarray(0, width));
        },
      ),
      { numRuns: scaled(100) },
    );
  });

  it('refuses factors that mean nothing', () => {
    const tensor = { format: 'fp64', shape: [1, 1, 2, 2], data: new Float64Array(4) } as const;
    const make = (values: number[]) => () =>
      tensorScales(tensor, [
        {
          name: 'descale',
          format: 'fp32',
          values: Float64Array.from(values),
          shape: [1, 1, 1, 1],
          blocks: [1, 1, 2, 2],
        },
      ]);
    expect(make([NaN])).toThrow('descale has NaN at element 0');
    expect(make([-1])).toThrow('descale has -1 at element 0');
    expect(make([1, 1])).toThrow('does not cover');
    expect(make([0.75])).toThrow('more than 53 significant bits');
    expect(make([0.5])).not.toThrow();
  });
});

describe('the oracle on scaled inputs', () => {
  it('is that of the multiplied numbers, to the bit', () => {
    const [heads, kvHeads, queries, keys, dim] = [4, 2, 5, 70, 8] as const;
    let state = 1;
    const pattern = () => (state = (Math.imul(state, 1103515245) + 12345) >>> 0) >>> 20;
    const tensor = (shape: readonly number[], blocks: readonly number[]): Tensor => {
      const count = shape.reduce((product, n) => product * n, 1);
      const data = Uint8Array.from(
        { length: count },
        () => (pattern() % 0x70) + (pattern() & 1) * 128,
      );
      const plain = { format: 'e4m3', shape, data } as const;
      const counts = shape.map((axis, i) => Math.ceil(axis / (blocks[i] ?? 1)));
      const values = Float64Array.from(
        { length: counts.reduce((product, n) => product * n, 1) },
        () => Math.fround(2 ** -5 * (1 + (pattern() % 4096) / 4096)),
      );
      const scales = tensorScales(plain, [
        { name: 'descale', format: 'fp32', values, shape: counts, blocks },
      ]);
      return { ...plain, scales };
    };
    const posed = {
      q: tensor([1, heads, queries, dim], [1, 2, queries, dim]),
      k: tensor([1, kvHeads, keys, dim], [1, 1, 32, dim]),
      v: tensor([1, kvHeads, keys, dim], [1, kvHeads, keys, 4]),
    };
    const settings = { scale: 0.25, causal: true, window: null, softcap: null };
    const widened = ({ shape, ...rest }: Tensor): Tensor => ({
      format: 'fp64',
      shape,
      data: encodeFromFloat64(formats.fp64, decodeTensor({ shape, ...rest })),
    });
    const problem: Problem = { ...posed, ...settings };
    const multiplied: Problem = {
      q: widened(posed.q),
      k: widened(posed.k),
      v: widened(posed.v),
      ...settings,
    };
    const [ours, theirs] = [attentionOracle(problem), attentionOracle(multiplied)];
    expect(ours.quantities.out.values).toEqual(theirs.quantities.out.values);
    expect(ours.quantities.lse.values).toEqual(theirs.quantities.lse.values);
    expect(
      ours.quantities.out.radius.every((radius, i) => radius <= theirs.quantities.out.radius[i]!),
    ).toBe(true);
    expect(problemFeatures(problem)).toEqual(['scales']);
    expect(problemFeatures(multiplied)).toEqual([]);
  });
});
