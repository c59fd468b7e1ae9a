import type { AttentionReference } from '../../../oracles/index.js';
import type { KernelArithmetic, MaximumRule } from '../../../kernels/index.js';
import { decodeTensor } from '../../formats/index.js';
import { rowPlaces, type Problem } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import type { RowErrors } from './technique-bound.js';

/**
 * Makes a function that gives the maximum (log2) that rows of one sequence and head share; null where each has its
 * own. Rows of the query heads of one kv head may be packed into one tile; those of different sequences are not.
 * @param rule only `shared` counts: see `MaximumRule`
 * @throws RequestError for a sample of rows, whose tiles hold others
 */
export function createSharedMaximum(
  problem: Problem,
  { shape, maximum }: Pick<AttentionReference, 'shape' | 'maximum'>,
  rule: MaximumRule,
): (head: number, sequence: number) => number | null {
  const shared = rule.kind === 'unknown' ? rule.shared : 'row';
  if (shared === 'row') return () => null;
  if (shared === 'none') return () => 0;
  if (problem.rows !== undefined)
    throw new RequestError(
      'maximum=group is relative to rows that a sample leaves out; judge all rows, or declare another maximum',
    );
  const { heads, kvHeads, groupSize, queries } = shape;
  const placeOf = rowPlaces(problem, shape);
  const largest = new Map<string, number>();
  const nameOf = (head: number, sequence: number) => {
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    return `${kv} ${sequence}`;
  };
  for (let row = 0; row < maximum.length; row++) {
    if (!Number.isFinite(maximum[row])) continue;
    const head = Math.floor(row / queries);
    const name = nameOf(head, placeOf(head, row % queries).sequence);
    largest.set(name, Math.max(largest.get(name) ?? -Infinity, maximum[row]));
  }
  return (head, sequence) => {
    const most = largest.get(nameOf(head, sequence));
    return most === undefined ? null : most / Math.LN2;
  };
}

/**
 * The largest log2 of a row sum with a sink relative to that of the keys, so that squares of the ratio are finite:
 * beyond, no weight remains for bounds to cover.
 */
export const mostSunken = 400;

/** Units of the weights of up to 64 rows: log2, a number for each row. */
export interface RowUnits {
  /** The maximum in use where it is not the row's own; null where it is. */
  readonly shared: number | null;
  /** log2 Σ 2^exponent over the keys and the sink that the LSE counts: the unit of all sums. */
  readonly lse: Float64Array;
  /** The largest exponent of a key. */
  readonly maximum: Float64Array;
  /** log2 of the divisor of the output: a sink counts whether the LSE has it or not. */
  readonly denominator: Float64Array;
  /** The sink's exponent; −∞ for none. */
  readonly sink: Float64Array;
  /** Whether the LSE has the sink. */
  readonly isSinkInLse: boolean;
}

/** Makes a function that gives the units of some rows of a head. */
export function createRowUnits(
  problem: Problem,
  reference: AttentionReference,
  rule: MaximumRule,
): (head: number, firstRow: number, rows: number) => RowUnits {
  const { shape, maximum, denominator } = reference;
  const sharedMaximum = createSharedMaximum(problem, reference, rule);
  const placeOf = rowPlaces(problem, shape);
  const sinks = problem.sink === undefined ? null : decodeTensor(problem.sink.logits);
  return (head, firstRow, rows) => {
    const first = head * shape.queries + firstRow;
    const inOctaves = (values: Float64Array) =>
      Float64Array.from({ length: rows }, (_, i) => values[first + i] / Math.LN2);
    const sink = (sinks?.[head % shape.heads] ?? -Infinity) / Math.LN2;
    return {
      shared: sharedMaximum(head, placeOf(head, firstRow).sequence),
      lse: inOctaves(reference.quantities.lse.values),
      maximum: inOctaves(maximum),
      denominator: inOctaves(denominator),
      sink: new Float64Array(rows).fill(sink),
      isSinkInLse: problem.sink?.inLse ?? false,
    };
  };
}

/** A row with a sink, as its bounds of the output see it. */
export interface SunkRow {
  /** The row sum without the sink (or with it, where the LSE has it) as a part of the row sum with it. */
  readonly share: number;
  /** The sink's weight, and its exponent (log2). */
  readonly weight: number;
  readonly exponent: number;
  /** The size of 1 relative to the row sum where weights are relative to the sink: 0 unless it is the largest score. */
  readonly gain: number;
  readonly isInLse: boolean;
}

/** The effect of a sink on row `i`; null without one. */
export function sunkRow(
  { lse, maximum, denominator, sink, shared, isSinkInLse }: RowUnits,
  i: number,
): SunkRow | null {
  if (sink[i] === -Infinity || !Number.isFinite(denominator[i])) return null;
  const weight = 2 ** (sink[i] - denominator[i]);
  const isLargest = sink[i] > (shared ?? maximum[i]);
  return {
    share: 2 ** Math.min(0, lse[i] - denominator[i]),
    weight,
    exponent: sink[i],
    gain: isLargest ? weight : 0,
    isInLse: isSinkInLse,
  };
}

/**
 * The errors of a row with a sink, relative to its whole row sum: those of the keys, which `errors` has, and those of the
 * sink, a key of value 0. Theorem 11 of docs/theory/bounds.md.
 * @param origin the number that exponents are relative to (log2)
 */
export function errorsWithSink(
  errors: RowErrors,
  sunk: SunkRow,
  { exponential, finish, rowSumAddition }: KernelArithmetic,
  origin: number,
): RowErrors {
  const all = errors.times(sunk.share);
  const { weight, exponent } = sunk;
  const distance = Math.abs(exponent - origin);
  // The sink times log2 e, both rounded.
  const ofExponent = Math.expm1(2 * finish.elementwise * Math.abs(exponent) * Math.LN2);
  all.mass += weight;
  // A weight that underflows may have any distance.
  if (weight > 0) {
    all.distance += weight * distance;
    all.distanceSquared += weight * distance ** 2;
    all.scores += weight * ofExponent;
    all.scoresSquared += weight * ofExponent ** 2;
  }
  all.exponentialVariance += 2 * (weight * exponential.hardware) ** 2;
  all.rowSum += rowSumAddition;
  return all;
}
