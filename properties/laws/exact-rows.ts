import { describePlace, elementAt } from '../../src/audit/index.js';
import { decodeTensor, formats, round, smallestNormal } from '../../src/formats/index.js';
import { keysOf, problemMask, type Problem } from '../../src/problem/index.js';
import type { RandomValues } from '../problems/index.js';
import type { KernelRun } from './law.js';
import { firstKeyRow } from './score-range.js';
import { indices } from './transform-problem.js';

/** log2 of the weight of each key relative to a row's largest; −∞ where it is zero in any kernel. */
export type RowExponents = Float64Array;

/** Distance below a row's largest score, in nats, beyond which a weight is zero, in fp32 (below 2^-149) or fp64. */
export function coldNats({ q, k, v }: Problem): number {
  return [q, k, v].some(({ format }) => format === 'fp64') ? 1024 : 512;
}

/** Sums of products, relative to their common unit: tensor cores keep 13 bits of fp8 ones at least. */
const largestSum = 2 ** 12;

/** The largest power of two that a number which is not zero is a whole multiple of. */
function unitOf(x: number): number {
  let unit = 2 ** Math.floor(Math.log2(Math.abs(x)));
  while (!Number.isInteger(x / unit)) unit /= 2;
  return unit;
}

function isPowerOfTwo(x: number): boolean {
  return unitOf(x) === Math.abs(x);
}

/** A function of a row: one number for each key that it sees, computed from the query's and the key's qk dim values. */
export function perVisibleKey(
  { problem, shape }: Pick<KernelRun, 'problem' | 'shape'>,
  ofPair: (query: Float64Array, key: Float64Array) => number,
): (row: number) => Float64Array {
  const { qkDim, queries } = shape;
  const q = decodeTensor(problem.q);
  const k = decodeTensor(problem.k);
  const rowOf = (values: Float64Array, row: number) =>
    values.subarray(row * qkDim, (row + 1) * qkDim);
  const mask = problemMask(problem, shape);
  return (row) => {
    const visible = keysOf(mask.ranges(Math.floor(row / queries), row % queries));
    const first = firstKeyRow(shape, row);
    const query = rowOf(q, row);
    return Float64Array.from(visible, (key) => ofPair(query, rowOf(k, first + key)));
  };
}

/** The elements of a run that must be exact, and what they must be. */
export interface ExactElements {
  /** Exact O where it must come out to the bit, else NaN. */
  readonly expected: Float64Array;
  readonly count: number;
}

/**
 * The elements of O for which every operation is exact, in any order, given the exponents of each row's
 * weights (null for a row that is left out). They are those for which
 * - weights, undivided or divided by their sum, are in the format of V,
 * - their sum W is a power of two,
 * - the products with V that are not zero are of one sign, so that a combine of splits, which rounds,
 *   does not cancel, and whole multiples of a unit, and sum to at most 2^12 units,
 * - the sum divided by W is in the output's format, a normal number or zero.
 */
export function exactElements(
  run: Pick<KernelRun, 'problem' | 'shape' | 'outputs'>,
  exponentsOf: (row: number) => RowExponents | null,
): ExactElements {
  const { problem, shape, outputs } = run;
  const { vDim, queries } = shape;
  const v = decodeTensor(problem.v);
  const ofWeights = formats[problem.v.format];
  const ofOutput = formats[outputs.out.format];
  const mask = problemMask(problem, shape);
  const rows = shape.batch * shape.heads * queries;
  const expected = new Float64Array(rows * vDim).fill(NaN);
  let count = 0;
  for (let row = 0; row < rows; row++) {
    const exponents = exponentsOf(row);
    if (exponents === null) continue;
    const weights = exponents.map((e) => 2 ** e);
    const total = weights.reduce((sum, w) => sum + w, 0);
    const isHeld = (w: number) =>
      round(ofWeights, w) === w && round(ofWeights, w / total) * total === w;
    if (!isPowerOfTwo(total) || !weights.every(isHeld)) continue;
    const first = firstKeyRow(shape, row);
    const visible = [...keysOf(mask.ranges(Math.floor(row / queries), row % queries))];
    for (let c = 0; c < vDim; c++) {
      let sum = 0;
      let magnitude = 0;
      let unit = Infinity;
      weights.forEach((w, j) => {
        const product = w === 0 ? 0 : w * v[(first + visible[j]) * vDim + c];
        if (product === 0) return;
        sum += product;
        magnitude += Math.abs(product);
        unit = Math.min(unit, unitOf(product));
      });
      const value = sum / total;
      const isExact = magnitude === Math.abs(sum) && magnitude <= largestSum * unit;
      const isStored =
        round(ofOutput, value) === value &&
        (value === 0 || Math.abs(value) >= smallestNormal(ofOutput));
      if (!(isExact || magnitude === 0) || !isStored) continue;
      expected[row * vDim + c] = value;
      count++;
    }
  }
  return { expected, count };
}

/** The first element that is not exact where it must be, in a sentence; null for none. */
export function firstInexact(run: KernelRun, { expected, count }: ExactElements): string | null {
  const wrong = (i: number) => !Number.isNaN(expected[i]) && run.out[i] !== expected[i];
  const first = expected.findIndex((_, i) => wrong(i));
  if (first < 0) return null;
  const others = expected.reduce((sum, _, i) => sum + (wrong(i) ? 1 : 0), 0);
  const place = describePlace(elementAt(run.shape, first));
  return `O at ${place} is ${run.out[first]} but exactly ${expected[first]}, which takes no rounding; ${others} of ${count} such elements are wrong`;
}

/** Selects the blocks of keys that may hold a hot key. */
type BlockRule = (block: number, blocks: number, chosen: number) => boolean;

const rules: readonly BlockRule[] = [
  () => true,
  (block) => block > 0,
  (block, blocks) => block < blocks - 1,
  (block, _, chosen) => block === chosen,
];

/**
 * Keys that may be hot, in random order: all of them, those of all blocks but the first or but the last,
 * or those of one block; all if a rule leaves none.
 */
export function hotPositions(keys: number, blockKeys: number, random: RandomValues): number[] {
  const blocks = Math.ceil(keys / blockKeys);
  const rule = rules[random.integer(0, rules.length - 1)];
  const chosen = random.integer(0, Math.max(blocks - 1, 0));
  const fitting = indices(keys).filter((key) => rule(Math.floor(key / blockKeys), blocks, chosen));
  const positions = fitting.length > 0 ? fitting : indices(keys);
  for (let i = positions.length - 1; i > 0; i--) {
    const j = random.integer(0, i);
    [positions[i], positions[j]] = [positions[j], positions[i]];
  }
  return positions;
}
