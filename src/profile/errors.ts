import { float64FromRational, scaledIntegerOf } from '../arith/index.js';
import type { MeasuredCounts } from './error-plan.js';
import { smallestSpacingExponent } from './float32-order.js';
import {
  binCount,
  type CountName,
  countNames,
  type ErrorRecord,
  type Extreme,
  listLength,
  type MonotonicityBreaks,
  type SumName,
  sumNames,
} from './record.js';

/** A sum of fp64 numbers without rounding, in units of 2^-1074: adding is associative. */
type ExactSum = bigint;

const unitExponent = 1074n;

/** A finite fp64 number as an exact sum. */
export function exactSumOf(value: number): ExactSum {
  if (value === 0) return 0n;
  const { integer, exponent } = scaledIntegerOf(value);
  return integer << (BigInt(exponent) + unitExponent);
}

/** The sum divided by a whole number above 0, rounded to fp64 once. */
export function quotient(sum: ExactSum, divisor: bigint): number {
  return float64FromRational(sum, divisor << unitExponent);
}

/** Sums over inputs whose ulps are alike. */
export interface Totals {
  inputs: number;
  /** Number of these inputs at which the scaled and the ulp error are measured. */
  scaled: number;
  ulp: number;
  /** Counts, in the order of `countNames`. */
  readonly counts: Float64Array;
  readonly histogram: Float64Array;
  /** Sums, in the order of `sumNames`. */
  readonly sums: ExactSum[];
}

/**
 * The errors of one function in one measure over any inputs. Adding more is associative and
 * commutative to the last bit: whole numbers are below 2^53, sums are exact, lists are the first of
 * a total order.
 */
export interface Errors {
  /** Totals by log2 of the input's ulp. */
  readonly totals: Map<number, Totals>;
  largestScaled: readonly Extreme[];
  largestUlp: readonly Extreme[];
  breaks: MonotonicityBreaks;
}

/** No breaks. */
export const noBreaks: MonotonicityBreaks = { count: 0, largest: [], first: [] };

/** The errors at no inputs. */
export function noErrors(): Errors {
  return { totals: new Map(), largestScaled: [], largestUlp: [], breaks: noBreaks };
}

function emptyTotals(): Totals {
  return {
    inputs: 0,
    scaled: 0,
    ulp: 0,
    counts: new Float64Array(countNames.length),
    histogram: new Float64Array(binCount),
    sums: sumNames.map(() => 0n),
  };
}

/** The largest of both lists: by value, then by ascending ordinal. */
function mergeExtremes(a: readonly Extreme[], b: readonly Extreme[]): readonly Extreme[] {
  if (b.length === 0) return a;
  return [...a, ...b]
    .sort((one, other) => other.value - one.value || one.ordinal - other.ordinal)
    .slice(0, listLength);
}

/** The breaks of both. */
export function mergeBreaks(a: MonotonicityBreaks, b: MonotonicityBreaks): MonotonicityBreaks {
  if (b.count === 0) return a;
  return {
    count: a.count + b.count,
    largest: mergeExtremes(a.largest, b.largest),
    first: [...a.first, ...b.first].sort((x, y) => x - y).slice(0, listLength),
  };
}

function addArray(target: Float64Array, more: Float64Array): void {
  for (let i = 0; i < target.length; i++) target[i] += more[i];
}

function totalsAt(errors: Errors, spacingExponent: number): Totals {
  const known = errors.totals.get(spacingExponent);
  if (known !== undefined) return known;
  const totals = emptyTotals();
  errors.totals.set(spacingExponent, totals);
  return totals;
}

function addLists(target: Errors, more: ErrorRecord | Errors): void {
  target.largestScaled = mergeExtremes(target.largestScaled, more.largestScaled);
  target.largestUlp = mergeExtremes(target.largestUlp, more.largestUlp);
  target.breaks = mergeBreaks(target.breaks, more.breaks);
}

/** Adds a record of `inputs` inputs whose ulp is 2^spacingExponent. */
export function addRecord(
  target: Errors,
  record: ErrorRecord,
  spacingExponent: number,
  inputs: number,
  measured: MeasuredCounts,
): void {
  const totals = totalsAt(target, spacingExponent);
  totals.inputs += inputs;
  totals.scaled += measured.scaled - countOf(record.counts, 'nonFiniteScaled');
  totals.ulp += measured.ulp - countOf(record.counts, 'nonFiniteUlp');
  addArray(totals.counts, record.counts);
  addArray(totals.histogram, record.histogram);
  // Inputs that are not measured have an error of 0 there.
  totals.histogram[0] -= inputs - measured.ulp + countOf(record.counts, 'nonFiniteUlp');
  for (const s of totals.sums.keys()) totals.sums[s] += exactSumOf(record.sums[s]);
  addLists(target, record);
}

/** Adds the errors at other inputs. */
export function addErrors(target: Errors, more: Errors): void {
  for (const [spacingExponent, from] of more.totals) {
    const totals = totalsAt(target, spacingExponent);
    totals.inputs += from.inputs;
    totals.scaled += from.scaled;
    totals.ulp += from.ulp;
    addArray(totals.counts, from.counts);
    addArray(totals.histogram, from.histogram);
    for (const s of totals.sums.keys()) totals.sums[s] += from.sums[s];
  }
  addLists(target, more);
}

function countOf(counts: Float64Array, name: CountName): number {
  return counts[countNames.indexOf(name)];
}

/** The weight of an input: each number counts once, or each counts by its ulp, so that x is uniform. */
export type Weighting = 'every number' | 'uniform in x';

/** Both ways of counting. */
export const weightings: readonly Weighting[] = ['every number', 'uniform in x'];

/** log2 of the weight of an input, 0 or up from that of the smallest ulp. */
function weightExponent(weighting: Weighting, spacingExponent: number): bigint {
  return weighting === 'every number' ? 0n : BigInt(spacingExponent - smallestSpacingExponent);
}

/** The weighted number of inputs that `select` counts, exact, in weights of the lightest input. */
export function weigh(
  errors: Errors,
  weighting: Weighting,
  select: (totals: Totals) => number,
): bigint {
  let total = 0n;
  for (const [spacingExponent, totals] of errors.totals)
    total += BigInt(select(totals)) << weightExponent(weighting, spacingExponent);
  return total;
}

/** The weighted sum, exact, in the same weights. */
export function weighSum(errors: Errors, weighting: Weighting, name: SumName): ExactSum {
  const index = sumNames.indexOf(name);
  let total = 0n;
  for (const [spacingExponent, { sums }] of errors.totals)
    total += sums[index] << weightExponent(weighting, spacingExponent);
  return total;
}

/** A function that reads the count of this name from totals. */
export function selectCount(name: CountName): (totals: Totals) => number {
  const index = countNames.indexOf(name);
  return ({ counts }) => counts[index];
}
