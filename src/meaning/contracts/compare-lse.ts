import {
  doubleDouble,
  multiplyDoubleDouble,
  subtractDoubleDouble,
  type DoubleDouble,
} from '../../arith/index.js';
import { ln2Words } from '../../../oracles/index.js';
import type { RowPlace } from './exact-row.js';

/** A factor of the LSE in octaves that gives the LSE of a base. */
interface LseUnit {
  readonly base: 'e' | '2';
  readonly name: string;
  readonly value: DoubleDouble;
  /** Whether it is the exact one. */
  readonly isIdeal: boolean;
}

/** The factors of kernels. */
function lseUnits(): readonly LseUnit[] {
  const rounded = doubleDouble(Math.fround(Math.LN2));
  return [
    { base: 'e', name: 'ln 2', value: ln2Words(), isIdeal: true },
    { base: '2', name: '1', value: doubleDouble(1), isIdeal: true },
    { base: 'e', name: 'fp32(ln 2)', value: rounded, isIdeal: false },
  ];
}

/** The largest distance of something, and where it is. */
export interface WorstDistance {
  /** Infinity where one of the two is infinite or NaN and the other is not that. */
  readonly distance: number;
  readonly place: RowPlace;
  /** 0 for an output of one number a row. */
  readonly column: number;
}

/** The LSE of a row: real, and in octaves with the kernel's factor of q·k and with the exact one. */
export interface LseRow {
  readonly place: RowPlace;
  readonly real: DoubleDouble;
  readonly inferred: DoubleDouble;
  readonly ideal: DoubleDouble;
}

/** The comparison of the LSE: distances are absolute below an LSE of 1, and relative above. */
export interface LseComparison {
  /** The base of the logarithm that fits better; null where no row says so. */
  readonly base: 'e' | '2' | null;
  /** With the kernel's factor of q·k, and the factor of the sum's logarithm that fits best; null where none is compared. */
  readonly worst: WorstDistance | null;
  /** That factor: `ln 2`, `fp32(ln 2)`, or `1` for base 2. */
  readonly unit: string | null;
  /** With the exact factor of q·k and that of the base. */
  readonly worstIdeal: WorstDistance | null;
  readonly compared: number;
  readonly withoutMeaning: number;
}

/** |real − exact| relative to a yardstick; numbers that are not finite must be the same. */
export function distanceOf(real: DoubleDouble, exact: DoubleDouble, yardstick: number): number {
  if (!Number.isFinite(real.high) || !Number.isFinite(exact.high))
    return Object.is(real.high, exact.high) ? 0 : Infinity;
  const distance = Math.abs(subtractDoubleDouble(real, exact).high);
  return distance === 0 ? 0 : distance / yardstick;
}

/** The worst row by a unit. */
function worstOf(
  rows: readonly LseRow[],
  which: 'inferred' | 'ideal',
  unit: LseUnit,
): WorstDistance | null {
  let worst: WorstDistance | null = null;
  for (const row of rows) {
    const octaves = row[which];
    const exact = Number.isFinite(octaves.high)
      ? multiplyDoubleDouble(octaves, unit.value)
      : octaves;
    const distance = distanceOf(row.real, exact, Math.max(1, Math.abs(exact.high)));
    if (worst === null || distance > worst.distance)
      worst = { distance, place: row.place, column: 0 };
  }
  return worst;
}

/** The unit by which the worst row is best. */
function bestUnit(
  rows: readonly LseRow[],
  which: 'inferred' | 'ideal',
  units: readonly LseUnit[],
): { readonly unit: LseUnit; readonly worst: WorstDistance | null } {
  return units
    .map((unit) => ({ unit, worst: worstOf(rows, which, unit) }))
    .reduce((a, b) => ((b.worst?.distance ?? 0) < (a.worst?.distance ?? 0) ? b : a));
}

/**
 * Compares LSEs in the base that fits better.
 * @param withoutMeaning number of rows whose real LSE has no meaning
 */
export function compareLse(rows: readonly LseRow[], withoutMeaning: number): LseComparison {
  const ideal = bestUnit(
    rows,
    'ideal',
    lseUnits().filter(({ isIdeal }) => isIdeal),
  );
  const { base } = ideal.unit;
  const inferred = bestUnit(
    rows,
    'inferred',
    lseUnits().filter((unit) => unit.base === base),
  );
  const isTold = rows.some(({ real }) => Number.isFinite(real.high));
  return {
    base: isTold ? base : null,
    worst: inferred.worst,
    unit: isTold ? inferred.unit.name : null,
    worstIdeal: ideal.worst,
    compared: rows.length,
    withoutMeaning,
  };
}
