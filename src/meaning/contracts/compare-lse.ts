import { subtractDoubleDouble, type DoubleDouble } from '../../arith/index.js';
import type { Problem } from '../../problem/index.js';
import type { RowPlace } from './exact-row.js';
import { lseForms, type LseForm, type LseParts } from './lse-forms.js';

/** The largest distance of something, and where it is. */
export interface WorstDistance {
  /** Infinity where one of the two is infinite or NaN and the other is not that. */
  readonly distance: number;
  readonly place: RowPlace;
  /** 0 for an output of one number a row. */
  readonly column: number;
}

/** The LSE of a row: real, and its parts with the kernel's factor of q·k and with the exact one. */
export interface LseRow {
  readonly place: RowPlace;
  readonly real: DoubleDouble;
  readonly inferred: LseParts;
  readonly ideal: LseParts;
}

/** The comparison of the LSE: distances are absolute below an LSE of 1, and relative above. */
export interface LseComparison {
  /** The base of the logarithm that fits better; null where no row says so. */
  readonly base: 'e' | '2' | null;
  /** With the kernel's factor of q·k, in the form that fits best; null where none is compared. */
  readonly worst: WorstDistance | null;
  /** That form, by its name in `lseForms`: `ln 2`, `fp32(ln 2)`, `1` for base 2, `max·scale + ln`, … */
  readonly unit: string | null;
  /** With the exact factor of q·k and that of the base. */
  readonly worstIdeal: WorstDistance | null;
  readonly compared: number;
  readonly withoutMeaning: number;
  /** Those of the compared that are finite. */
  readonly telling: number;
}

/** |real − exact| relative to a yardstick, Infinity where that is no number; numbers that are not finite must be the same. */
export function distanceOf(real: DoubleDouble, exact: DoubleDouble, yardstick: number): number {
  if (!Number.isFinite(real.high) || !Number.isFinite(exact.high))
    return Object.is(real.high, exact.high) ? 0 : Infinity;
  const distance = Math.abs(subtractDoubleDouble(real, exact).high);
  if (distance === 0) return 0;
  const relative = distance / yardstick;
  // A NaN is larger than nothing, and a yardstick that overflowed measures nothing.
  return Number.isNaN(relative) || yardstick === Infinity ? Infinity : relative;
}

/** The worst row by a form. */
function worstOf(
  rows: readonly LseRow[],
  which: 'inferred' | 'ideal',
  form: LseForm,
): WorstDistance | null {
  let worst: WorstDistance | null = null;
  for (const row of rows) {
    const distances = form
      .valuesOf(row[which])
      .map((exact) => distanceOf(row.real, exact, Math.max(1, Math.abs(exact.high))));
    const distance = Math.min(...distances);
    if (worst === null || distance > worst.distance)
      worst = { distance, place: row.place, column: 0 };
  }
  return worst;
}

/** A form at this distance or less fits, and no later one is taken for it: several are the same but for rounding. */
const fittingDistance = 1e-27;

/** The form by which the worst row is best: the first that fits, or that of the least distance. */
function bestForm(
  rows: readonly LseRow[],
  which: 'inferred' | 'ideal',
  forms: readonly LseForm[],
): { readonly form: LseForm; readonly worst: WorstDistance | null } {
  return forms
    .map((form) => ({ form, worst: worstOf(rows, which, form) }))
    .reduce((a, b) => {
      const [first, second] = [a, b].map(({ worst }) => worst?.distance ?? 0);
      return first > fittingDistance && second < first ? b : a;
    });
}

/**
 * Compares LSEs in the base that fits better.
 * @param withoutMeaning number of rows whose real LSE has no meaning
 */
export function compareLse(
  rows: readonly LseRow[],
  { scale, softcap }: Pick<Problem, 'scale' | 'softcap'>,
  withoutMeaning: number,
): LseComparison {
  const forms = softcap === null ? lseForms(scale) : lseForms(softcap, 'softcap');
  const ideal = bestForm(
    rows,
    'ideal',
    forms.filter(({ isIdeal }) => isIdeal),
  );
  const { base } = ideal.form;
  const inferred = bestForm(
    rows,
    'inferred',
    forms.filter((form) => form.base === base),
  );
  const isTold = rows.some(({ real }) => Number.isFinite(real.high));
  return {
    base: isTold ? base : null,
    worst: inferred.worst,
    unit: isTold ? inferred.form.name : null,
    worstIdeal: ideal.worst,
    compared: rows.length,
    withoutMeaning,
    telling: rows.filter(({ ideal: { octaves } }) => Number.isFinite(octaves.high)).length,
  };
}
