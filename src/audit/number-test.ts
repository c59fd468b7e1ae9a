import type { FormatName } from '../formats/index.js';
import { isAdmittedOverflow } from './element-test.js';
import { outputRounding } from './bounds/index.js';
import { type ComparedValues, type Coordinates, placeOf } from './kernel-outputs.js';

/** The number of every row (an LSE) against the oracle and its bound. Errors are absolute. */
export interface NumberTest {
  readonly rows: number;
  readonly outside: number;
  /** Rows without a bound. */
  readonly unbounded: number;
  /** Rows NaN or infinite where a correct kernel is not, or the reverse. */
  readonly nonFinite: number;
  readonly max: number;
  readonly rms: number;
  /** Mean signed error over the finite rows. */
  readonly mean: number;
  readonly worstRatio: number;
  readonly worst: {
    readonly at: Coordinates;
    readonly value: number;
    readonly oracle: number;
    readonly bound: number;
  } | null;
  readonly firstNonFinite: {
    readonly at: Coordinates;
    readonly value: number;
    readonly oracle: number;
  } | null;
  /**
   * The mistake that would make the whole tensor pass: `base-2` when every row fits its bound after a factor
   * of ln 2, `offset` when it fits after subtracting the mean error, else null. Either way the root mean
   * square error is then at most half of what it was.
   */
  readonly looksLike: 'base-2' | 'offset' | null;
}

/** Whether a correct kernel may give a NaN or an infinity among the values, or where the oracle has one. */
function admits(value: number, exact: number, error: number, format: FormatName): boolean {
  if (value === exact) return true;
  if (Number.isNaN(exact)) return Number.isNaN(value);
  // Where nothing bounds the error, an infinity still needs a number that rounds to it.
  const known = Number.isFinite(error) ? error : 0;
  if (Number.isFinite(exact)) return isAdmittedOverflow(value, exact, known, format);
  return exact === Infinity && Number.isNaN(value);
}

/**
 * Tests |value − exact| ≤ bound row by row, the rounding of the stored number added. An infinity must be
 * one.
 *
 * @param bounds the worst case of a correct kernel before the number is stored
 * @param admitsOverflow whether a row without a bound may be infinite or NaN, by its index: `Premises.isShortRange`
 * @throws Error for a bound that is NaN: a defect of the bounds, which must not count as passed
 */
export function testNumbers(
  compared: ComparedValues,
  bounds: Float64Array,
  admitsOverflow: (row: number) => boolean = () => false,
): NumberTest {
  const { quantity, shape, values, format } = compared;
  const { values: oracle } = compared.exact;
  const rows = values.length;
  const limits = Float64Array.from(values, (_, row) => {
    const exact = oracle[row];
    if (!Number.isFinite(exact)) return 0;
    const limit = bounds[row];
    if (Number.isNaN(limit)) throw new Error(`the bound of ${quantity.prose} of row ${row} is NaN`);
    return limit + outputRounding(format, exact, limit);
  });
  let outside = 0;
  let nonFinite = 0;
  let finite = 0;
  let sum = 0;
  let squares = 0;
  let max = 0;
  let worstRatio = 0;
  let worst: NumberTest['worst'] = null;
  let firstNonFinite: NumberTest['firstNonFinite'] = null;
  for (let row = 0; row < rows; row++) {
    const exact = oracle[row];
    const error = values[row] - exact;
    if (!Number.isFinite(error)) {
      if (bounds[row] === Infinity && Number.isFinite(exact) && admitsOverflow(row)) continue;
      if (
        !(compared.mayBeNaN(row) && Number.isNaN(values[row])) &&
        !admits(values[row], exact, bounds[row], format)
      ) {
        nonFinite++;
        firstNonFinite ??= {
          at: placeOf(quantity, shape, row),
          value: values[row],
          oracle: exact,
        };
      }
      continue;
    }
    finite++;
    sum += error;
    squares += error * error;
    max = Math.max(max, Math.abs(error));
    const ratio = error === 0 ? 0 : Math.abs(error) / limits[row];
    if (ratio > 1) outside++;
    if (worst === null || ratio > worstRatio) {
      worstRatio = ratio;
      worst = {
        at: placeOf(quantity, shape, row),
        value: values[row],
        oracle: exact,
        bound: limits[row],
      };
    }
  }
  const mean = sum / Math.max(finite, 1);
  const fits = (restore: (value: number) => number) => {
    let remaining = 0;
    const isWithin = values.every((value, row) => {
      const error = Math.abs(restore(value) - oracle[row]);
      if (Number.isNaN(error)) return true;
      remaining += error * error;
      return error <= 2 * limits[row];
    });
    // A tensor that fits as it is, except for a few rows, is not explained by a change of all of them.
    return isWithin && remaining <= squares / 4;
  };
  const looksLike =
    outside === 0
      ? null
      : fits((value) => value * Math.LN2)
        ? 'base-2'
        : fits((value) => value - mean)
          ? 'offset'
          : null;
  return {
    rows,
    outside,
    unbounded: limits.reduce((count, limit) => count + (limit === Infinity ? 1 : 0), 0),
    nonFinite,
    max,
    rms: Math.sqrt(squares / Math.max(finite, 1)),
    mean,
    worstRatio,
    worst,
    firstNonFinite,
    looksLike,
  };
}
