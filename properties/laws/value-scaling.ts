import {
  decodeTensor,
  decodeToFloat64,
  encodeFromFloat64,
  formats,
  smallestNormal,
  unitRoundoff,
  type FormatName,
} from '../../src/formats/index.js';
import {
  keysOf,
  problemMask,
  problemShape,
  scoreLaw,
  scoreOf,
  type Problem,
  type Tensor,
} from '../../src/problem/index.js';
import { describeDifference, firstDifference } from './compare-runs.js';
import type { Law } from './law.js';
import { largestAddend } from './score-range.js';

/** The scores of a row, of the keys that it sees. */
interface RowScores {
  /** Over [batch, heads, queries]. */
  readonly row: number;
  /** Over [batch, kv heads]. */
  readonly kvHead: number;
  /** The keys that it sees, ascending. */
  readonly visible: Int32Array;
  /** Natural units, scale and softcap applied, fp64. */
  readonly scores: Float64Array;
  /** The most that a correct kernel's scores may differ. */
  readonly radii: Float64Array;
}

/** Roundings of a score that a kernel may do in the format of the inputs: the product, scaled, capped. */
const inputRoundings = 4;

/**
 * The scores of every row, about as exact as fp64, with a generous radius of what a correct kernel's
 * may be: products summed in fp32 in any order, and the result rounded to the inputs' format at every
 * step. One row after the other, in the same memory. NaN and ∞ are what they make in fp64.
 */
export function* rowScores(problem: Problem): Generator<RowScores> {
  const shape = problemShape(problem);
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim } = shape;
  const { q, k, scale, softcap } = problem;
  const queryValues = decodeTensor(q);
  const keyValues = decodeTensor(k);
  const coarse = inputRoundings * unitRoundoff(formats[q.format]);
  const relative = coarse + (qkDim + 4) * 2 * unitRoundoff(formats.fp32);
  const scores = new Float64Array(keys);
  const radii = new Float64Array(keys);
  const visible = new Int32Array(keys);
  const mask = problemMask(problem, shape);
  const law = scoreLaw(problem);
  const added = largestAddend(problem);
  for (let row = 0; row < batch * heads * queries; row++) {
    const head = Math.floor(row / queries);
    const kvHead = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    let seen = 0;
    for (const key of keysOf(mask.ranges(head, row % queries))) {
      let sum = 0;
      let magnitude = 0;
      for (let t = 0; t < qkDim; t++) {
        const product = queryValues[row * qkDim + t] * keyValues[(kvHead * keys + key) * qkDim + t];
        sum += product;
        magnitude += Math.abs(product);
      }
      scores[seen] = scoreOf(law, sum, head, row % queries, key);
      radii[seen] =
        relative * magnitude * Math.abs(scale) +
        (softcap === null ? 0 : coarse * softcap) +
        (law.addend === null ? 0 : 2 * coarse * (Math.abs(scores[seen]) + added));
      visible[seen++] = key;
    }
    yield {
      row,
      kvHead,
      visible: visible.subarray(0, seen),
      scores: scores.subarray(0, seen),
      radii: radii.subarray(0, seen),
    };
  }
}

/** log2 of the factors, by choice. */
const exponents = [1, -1, 2, -2, 3, -3, 5, -5, 9, -9, 20, -20] as const;

/** Limit beyond which n · 2^8 weights times a value could come near fp32's largest number. */
const largestValue = 2 ** 90;

/**
 * Below, a product of weight and value, and what rounding leaves when such cancel, may come near fp32's
 * subnormals, where rounding does not scale: 2^-126 but for 24 bits of a cancelling sum, as many of a
 * normalised or lagging weight, and some to spare.
 */
const smallestProduct = 2 ** -60;

/** A weight below is 0 in fp32, however far a maximum lags. */
export const vanishingWeight = 2 ** -174;

/** Whether a number is normal in a format, with a margin of 2 toward both of its ends. */
export function isWellInside(name: FormatName, x: number): boolean {
  const format = formats[name];
  return Math.abs(x) >= 2 * smallestNormal(format) && Math.abs(x) <= format.maxFinite / 2;
}

/** Whether a value and the value times the factor are normal numbers of the format, or 0. */
function isScalable(name: FormatName, factor: number, x: number): boolean {
  const format = formats[name];
  const isUsable = (y: number) =>
    Math.abs(y) >= smallestNormal(format) &&
    Math.abs(y) <= Math.min(format.maxFinite, largestValue);
  return x === 0 || (isUsable(x) && isUsable(x * factor));
}

/** V's elements without scales, those that cannot be scaled exactly replaced by 0. */
function scalableValues({ format, data }: Tensor, factor: number): Float64Array {
  const isKept = (x: number) => isScalable(format, factor, x);
  return decodeToFloat64(data, formats[format]).map((x) => (isKept(x) ? x : 0));
}

/** The problem with these elements of V, which are numbers of its format. */
function withValues(problem: Problem, values: Float64Array): Problem {
  const data = encodeFromFloat64(formats[problem.v.format], values);
  return { ...problem, v: { ...problem.v, data } };
}

/**
 * For every row and column whether no product of a weight and a value is where fp32 underflows, before
 * or after the scaling.
 */
function steadyElements(problem: Problem, values: Float64Array, factor: number): Uint8Array {
  const { batch, heads, queries, keys, vDim } = problemShape(problem);
  const steady = new Uint8Array(batch * heads * queries * vDim);
  const smallest = smallestProduct / Math.min(1, factor);
  for (const scored of rowScores(problem)) {
    const floors = leastValues(scored, smallest);
    const first = scored.kvHead * keys;
    for (let c = 0; c < vDim; c++)
      steady[scored.row * vDim + c] = floors.every((floor, j) => {
        const value = Math.abs(values[(first + scored.visible[j]) * vDim + c]);
        return value === 0 || value >= floor;
      })
        ? 1
        : 0;
  }
  return steady;
}

/** The least value of each visible key whose product with its weight is steady; 0 for any. */
function leastValues({ scores, radii }: RowScores, smallest: number): number[] {
  let highest = -Infinity;
  let lowest = -Infinity;
  scores.forEach((score, j) => {
    highest = Math.max(highest, score + radii[j]);
    lowest = Math.max(lowest, score - radii[j]);
  });
  return Array.from(scores, (score, j) => {
    if (Math.exp(score + radii[j] - lowest) <= vanishingWeight) return 0;
    const least = smallest / Math.exp(score - radii[j] - highest);
    // A score of NaN says nothing of its row.
    return Number.isNaN(least) ? Infinity : least;
  });
}

/**
 * V and V times a power of two; both with 0 in place of those elements of V that are subnormal,
 * special or beyond 2^90 in one of them. Compared are the LSE of all rows, and O where it is well
 * inside the normal range of its format both times and no product of a weight and a value, however far
 * a maximum lags, can underflow in fp32.
 */
export const valueScaling: Law = {
  statement: 'V times a power of two gives O times that, to the bit, and the same LSE',
  reason:
    'Every rounding on the way from V to O scales with its operands while nothing overflows or underflows, and neither scores nor sums read V.',
  strengths: ['bits'],
  usual: 'bits',
  choices: exponents.length,
  without: ['sink'],
  violation: async ({ problem, choice }, { run }) => {
    const exponent = exponents[choice];
    const factor = 2 ** exponent;
    const values = scalableValues(problem.v, factor);
    const steady = steadyElements(problem, values, factor);
    const usual = await run(withValues(problem, values));
    const scaled = await run(
      withValues(
        problem,
        values.map((x) => x * factor),
      ),
    );
    const { vDim } = usual.shape;
    const isInside = (x: number) => isWellInside(usual.outputs.out.format, x);
    const difference = firstDifference(
      { ...usual, out: usual.out.map((x) => x * factor) },
      scaled,
      {
        elements: (row, column) => {
          const i = row * vDim + column;
          return steady[i] === 1 && [usual.out[i], usual.out[i] * factor].every(isInside);
        },
      },
    );
    const words = `with V times 2^${exponent}`;
    const before = difference?.what === 'O' ? `times 2^${exponent} at first` : 'at first';
    return difference && describeDifference(difference, before, words);
  },
};
