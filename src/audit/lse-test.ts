import type { AttentionReference } from '../../oracles/index.js';
import type { FormatName } from '../formats/index.js';
import { isAdmittedOverflow } from './admitted-infinity.js';
import { outputRounding } from './bounds/index.js';
import { rowAt, type Coordinates } from './error-profile.js';
import { isUndefinedRow } from './undefined-row.js';

/** The LSE of every row against the oracle and its bound. Errors are absolute, in natural-log units. */
export interface LseTest {
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
    readonly lse: number;
    readonly oracle: number;
    readonly bound: number;
  } | null;
  readonly firstNonFinite: {
    readonly at: Coordinates;
    readonly lse: number;
    readonly oracle: number;
  } | null;
  /**
   * What the whole tensor would pass as: `base-2` when every row fits its bound after a factor of
   * ln 2, `offset` when it fits after subtracting the mean error, else null. Either way the root mean
   * square error is then at most half of what it was.
   */
  readonly looksLike: 'base-2' | 'offset' | null;
}

/** Whether a NaN or an infinity among the values or the oracle's is what a correct kernel may give. */
function admits(value: number, exact: number, error: number, format: FormatName): boolean {
  if (value === exact) return true;
  if (Number.isNaN(exact)) return Number.isNaN(value);
  // Where nothing bounds the error, an infinity still needs an LSE that rounds to it.
  const known = Number.isFinite(error) ? error : 0;
  if (Number.isFinite(exact)) return isAdmittedOverflow(value, exact, known, format);
  return exact === Infinity && Number.isNaN(value);
}

/**
 * Tests |lse − oracle| ≤ bound row by row, the rounding of the stored LSE added. Rows without keys must
 * be −∞.
 *
 * @param bounds the worst case of a correct kernel before the LSE is stored, natural logarithms
 * @throws Error for a bound that is NaN: a defect of the bounds, which must not count as passed
 */
export function testLse(
  reference: AttentionReference,
  lse: Float64Array,
  lseFormat: FormatName,
  bounds: Float64Array,
): LseTest {
  const rows = lse.length;
  const limits = Float64Array.from(lse, (_, row) => {
    const exact = reference.quantities.lse.values[row];
    if (!Number.isFinite(exact)) return 0;
    const limit = bounds[row];
    if (Number.isNaN(limit)) throw new Error(`the bound of the LSE of row ${row} is NaN`);
    return limit + outputRounding(lseFormat, exact, limit);
  });
  let outside = 0;
  let nonFinite = 0;
  let compared = 0;
  let sum = 0;
  let squares = 0;
  let max = 0;
  let worstRatio = 0;
  let worst: LseTest['worst'] = null;
  let firstNonFinite: LseTest['firstNonFinite'] = null;
  for (let row = 0; row < rows; row++) {
    const exact = reference.quantities.lse.values[row];
    const error = lse[row] - exact;
    if (!Number.isFinite(error)) {
      const mayBeNaN = isUndefinedRow(reference, row);
      if (
        !(mayBeNaN && Number.isNaN(lse[row])) &&
        !admits(lse[row], exact, bounds[row], lseFormat)
      ) {
        nonFinite++;
        firstNonFinite ??= { at: rowAt(reference.shape, row), lse: lse[row], oracle: exact };
      }
      continue;
    }
    compared++;
    sum += error;
    squares += error * error;
    max = Math.max(max, Math.abs(error));
    const ratio = error === 0 ? 0 : Math.abs(error) / limits[row];
    if (ratio > 1) outside++;
    if (worst === null || ratio > worstRatio) {
      worstRatio = ratio;
      worst = {
        at: rowAt(reference.shape, row),
        lse: lse[row],
        oracle: exact,
        bound: limits[row],
      };
    }
  }
  const mean = sum / Math.max(compared, 1);
  const fits = (restore: (value: number) => number) => {
    let remaining = 0;
    const isWithin = lse.every((value, row) => {
      const error = Math.abs(restore(value) - reference.quantities.lse.values[row]);
      if (Number.isNaN(error)) return true;
      remaining += error * error;
      return error <= 2 * limits[row];
    });
    // What fits as it is, but for a few rows, is not explained by what is done to all of them.
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
    rms: Math.sqrt(squares / Math.max(compared, 1)),
    mean,
    worstRatio,
    worst,
    firstNonFinite,
    looksLike,
  };
}
