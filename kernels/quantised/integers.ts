import { addFloat32, multiplyFloat32 } from '../../src/arith/index.js';
import { dividerByReciprocal } from '../../src/hardware/index.js';
import type { DivisionQuality, IntegerRounding } from '../promises.js';
import type { RowGroups } from './row-groups.js';

/** How numbers become integers. */
export interface IntegerRule {
  /** The largest integer: 127, or 7. */
  readonly largest: number;
  readonly rounding: IntegerRounding;
  readonly division: DivisionQuality;
  /** Added to a factor, so that none is 0: an fp32 number. */
  readonly floor: number;
}

/** Integers of a head, and the factor of each group of rows. */
export interface Integers {
  /** [rows × dim] */
  readonly elements: Float64Array;
  /** [groups]: fp32 numbers. */
  readonly factors: Float64Array;
}

/** A function that divides by an fp32 number, with fp32 quotients of the quality. */
function divider(quality: DivisionQuality, b: number): (a: number) => number {
  if (quality === 'nearest') return (a) => Math.fround(a / b);
  return dividerByReciprocal(b, { isFull: true, flushes: false });
}

/** The largest magnitude of each group; NaN does not count, as of an fp32 maximum. */
export function largestOfGroups(
  values: Float64Array,
  dim: number,
  groups: RowGroups,
): Float64Array {
  const largest = new Float64Array(groups.count);
  groups.of.forEach((group, row) => {
    for (let at = row * dim; at < (row + 1) * dim; at++) {
      const size = Math.abs(values[at]);
      if (size > largest[group]) largest[group] = size;
    }
  });
  return largest;
}

/** To the nearest integer, ties to even. */
function nearestEven(x: number): number {
  const floor = Math.floor(x);
  const rest = x - floor;
  if (rest !== 0.5) return Math.round(x);
  return floor % 2 === 0 ? floor : floor + 1;
}

/** A conversion to an integer keeps 8 bits of it, or saturates; NaN becomes 0. */
function clamped(x: number, most: number): number {
  return Number.isNaN(x) ? 0 : Math.max(-most - 1, Math.min(most, x));
}

/** The factors of groups, by their largest magnitudes. */
function integerFactors(
  largest: Float64Array,
  { largest: most, division, floor }: IntegerRule,
): Float64Array {
  const divide = divider(division, most);
  return largest.map((x) => addFloat32(divide(x), floor));
}

/** The integers of numbers in a group of that factor and largest magnitude: one quotient serves a whole group. */
function integerOf(rule: IntegerRule, factor: number, largest: number): (x: number) => number {
  const { largest: most, rounding, division } = rule;
  if (rounding === 'half-away') {
    const divide = divider(division, factor);
    return (x) => {
      const quotient = divide(x);
      const moved = addFloat32(quotient, quotient >= 0 ? 0.5 : -0.5);
      return clamped(Math.trunc(moved), 127) + 0;
    };
  }
  const inverse = divider(division, largest)(most);
  return (x) => clamped(nearestEven(multiplyFloat32(x, inverse)), most) + 0;
}

/**
 * The integers of a head of fp32 numbers, [rows × dim].
 * Sources: sageattention 1.0.6, quant_per_block.py (half away); SageAttention 2, quant_per_thread.py and csrc/fused (half even).
 */
export function quantiseIntegers(
  values: Float64Array,
  dim: number,
  groups: RowGroups,
  rule: IntegerRule,
): Integers {
  // What CUDA code begins its maximum with.
  const least = rule.rounding === 'half-even' ? Math.fround(1e-7) : 0;
  const largest = largestOfGroups(values, dim, groups).map((x) => Math.max(x, least));
  const factors = integerFactors(largest, rule);
  const ofGroups = Array.from(factors, (factor, group) => integerOf(rule, factor, largest[group]));
  const elements = new Float64Array(values.length);
  groups.of.forEach((group, row) => {
    const toInteger = ofGroups[group];
    for (let at = row * dim; at < (row + 1) * dim; at++) elements[at] = toInteger(values[at]);
  });
  return { elements, factors };
}
