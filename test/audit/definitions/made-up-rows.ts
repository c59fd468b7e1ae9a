/** Rows of made-up numbers, and the textbook's sums of their errors by group and by place. */
import * as fc from 'fast-check';
import { expect } from 'vitest';
import { outputPlaces } from '../../../src/audit/structure/common-offset.js';
import { ErrorPool } from '../../../src/audit/structure/error-pool.js';
import { smoothPlaces, type RowProjections } from '../../../src/audit/structure/row-tolerance.js';
import { pseudorandom } from '../../setup/problems.js';

/** Two instruments. */
export const both = [0, 1] as const;
/** Numbers of the families. */
export const families = [0, 1, 2] as const;
/** Σ of numbers. */
export const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);
/** x². */
export const squared = (x: number) => x * x;

/** An error of a group, on each instrument. */
interface Grouped {
  readonly group: number;
  readonly x: readonly number[];
}

/** A row by numbers, and the same as a structure test has it. */
export interface Row {
  readonly unit: number | null;
  readonly weights: readonly Grouped[];
  readonly outputs: readonly Grouped[];
  readonly massOfLse: Float64Array;
  readonly own: Float64Array;
  readonly row: RowProjections;
}

/** The same errors in a pool. */
function poolOf(channels: number, errors: readonly Grouped[]): ErrorPool {
  const pool = new ErrorPool(channels);
  for (const { group, x } of errors) pool.addAll(group, Float64Array.from(x));
  return pool;
}

/** A row by chance. */
export function rowOf(seed: number, unit: number | null): Row {
  const random = pseudorandom(seed);
  const numbers = (length: number, one = random) => Float64Array.from({ length }, one);
  const size = () => Math.abs(random());
  const errors = (count: number, channels: number) =>
    Array.from({ length: count }, () => ({
      group: Math.floor(4 * size()),
      x: [...numbers(channels)],
    }));
  const [weights, outputs] = [errors(5, 3), errors(4, 2)];
  return {
    unit,
    weights,
    outputs,
    massOfLse: numbers(3 * smoothPlaces, size),
    own: numbers(2),
    row: {
      signed: numbers(2),
      // Of some rows nothing is left.
      norm: numbers(2, () => Math.max(0, random() + 0.7)),
      weights: poolOf(3, weights),
      outputs: poolOf(2, outputs),
      places: numbers(2 * outputPlaces),
      outputWorst: numbers(2, () => 3 * size()),
      systematic: numbers(2, size),
      written: numbers(2, size),
      common: numbers(2, size),
      accumulated: numbers(2, size),
      smooth: numbers(2 * smoothPlaces),
      mass: numbers(3 * smoothPlaces, size),
      squares: numbers(2 * smoothPlaces, size),
      known: numbers(2, size),
      shifts: [0, 3 * random(), 3 * random()],
      rounding: 2 * size(),
    },
  };
}

/** Some rows, of which some err alike: those of unit 0, and those of unit 1. */
export const someRows = fc.array(
  fc
    .tuple(fc.integer({ min: 1, max: 2 ** 20 }), fc.constantFrom(null, null, 0, 1))
    .map(([seed, unit]) => rowOf(seed, unit)),
  { maxLength: 6 },
);

/** Sums over the errors of each group, on an instrument. */
export function groupSums(errors: readonly Grouped[], d: number) {
  const groups = new Map<number, number[]>();
  for (const { group, x } of errors) groups.set(group, [...(groups.get(group) ?? []), x[d]]);
  const all = [...groups.values()];
  return {
    absolute: sum(errors.map(({ x }) => Math.abs(x[d]))),
    coherent: sum(all.map((xs) => Math.abs(sum(xs)))),
    independent: sum(all.flatMap((xs) => xs.map(squared))),
    /** Alike, or independent, whichever is more. */
    squared: sum(all.map((xs) => Math.max(sum(xs) ** 2, sum(xs.map(squared))))),
  };
}

/** Errors times a factor. */
export const scaled = (errors: readonly Grouped[], factor: number) =>
  errors.map(({ group, x }) => ({ group, x: x.map((one) => factor * one) }));

/** The places of a set. */
export const placesAt = (numbers: Float64Array, set: number) => [
  ...numbers.subarray(set * smoothPlaces, (set + 1) * smoothPlaces),
];

/** The mean square of half an ulp by place, relative to the largest, where all are moved by what makes most of it. */
export function shareOfLargest(squares: readonly number[]): number {
  if (!(sum([...squares]) > 0)) return 1;
  const moved = squares.map((_, shift) =>
    sum(squares.map((x, place) => x * 4 ** (-((place + shift) % smoothPlaces) / smoothPlaces))),
  );
  return Math.max(...moved) / sum([...squares]);
}

/** The largest sum of outputs' roundings that are all moved alike. */
export function shiftedOutputs(byPlace: readonly number[]): number {
  const error = (f: number) => (f < 0.5 ? -2 * f : 2 - 2 * f);
  const moved = byPlace.map((_, shift) =>
    sum(byPlace.map((x, at) => x * error((((at + shift) % outputPlaces) + 0.5) / outputPlaces))),
  );
  return Math.max(...moved.map(Math.abs));
}

/** The least over the ways to bound the roundings of weights and of outputs, as known and random parts. */
export function least(
  z: number,
  weights: readonly (readonly [number, number])[],
  outputs: readonly (readonly [number, number])[],
  others: number,
): number {
  const all = weights.flatMap(([a, va]) =>
    outputs.map(([b, vb]) => a + b + z * Math.sqrt(va + vb + others)),
  );
  return Math.min(...all);
}

/** The largest relative error of the exponential. */
export const exponential = 0.3;

/** Checks that two numbers are within roundings of fp64. */
export function near(actual: number, wanted: number, what = ''): void {
  if (!(Math.abs(actual - wanted) <= 1e-10 * Math.max(1, Math.abs(wanted))))
    expect(actual, what).toBe(wanted);
}
