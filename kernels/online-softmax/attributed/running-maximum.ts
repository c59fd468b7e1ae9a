import type { Recipe } from '../recipe.js';
import { exp2Units, warpRows } from '../units.js';

/** The path that a tile takes through the blocks of keys: one number per row, all fp32 numbers. */
interface RunningMaximum {
  /** What is subtracted from the scores of this block: the maximum in use, 0 where that is −∞. */
  readonly subtracted: Float64Array;
  /** The maximum in use before this block. */
  readonly before: Float64Array;
  /** The maximum in use now. */
  readonly current: Float64Array;
  /** The largest score up to now, which the maximum in use may lag behind. */
  readonly largest: Float64Array;
  /** α as the GPU computes it. */
  readonly alpha: Float64Array;
  /** Whether the row's warp multiplies its outputs by α: any of its 32 rows has α < 1. */
  readonly multiplies: Uint8Array;
  readonly begin: () => void;
  /** Takes the emulated scores [rows × columns] of the next block, −∞ where masked. */
  readonly step: (scores: Float64Array, rows: number, columns: number) => void;
}

/**
 * A recipe's running maximum of a tile's rows, with its decisions not to rescale. A NaN among the scores
 * is dropped, as PTX's max does.
 */
export function createRunningMaximum({
  tiling,
  exponent,
  exponential,
  rescale,
}: Recipe): RunningMaximum {
  const { queries: tileQueries } = tiling;
  const { scale } = exponent;
  const exp2 = exp2Units[exponential.unit];
  const rescaleThreshold = Math.fround(rescale.threshold);
  const numbers = (): Float64Array => new Float64Array(tileQueries);
  const [subtracted, before, current, largest, alpha] = Array.from({ length: 5 }, numbers);
  const multiplies = new Uint8Array(tileQueries);
  let isFirst = true;

  function stepRow(row: number, blockMaximum: number): void {
    before[row] = current[row];
    const now = Math.max(current[row], blockMaximum);
    current[row] = now;
    largest[row] = Math.max(largest[row], blockMaximum);
    subtracted[row] = now === -Infinity ? 0 : now;
    alpha[row] = 0;
    if (isFirst) return;
    const above = rescale.checksInfinity ? subtracted[row] : now;
    const lag = Math.fround(Math.fround(before[row] - above) * scale);
    alpha[row] = exp2(lag);
    if (!(rescaleThreshold > 0 && lag >= -rescaleThreshold)) return;
    current[row] = before[row];
    subtracted[row] = before[row];
    alpha[row] = 1;
  }

  return {
    subtracted,
    before,
    current,
    largest,
    alpha,
    multiplies,
    begin: () => {
      isFirst = true;
      current.fill(-Infinity);
      largest.fill(-Infinity);
    },
    step: (scores, rows, columns) => {
      for (let row = 0; row < rows; row++) {
        let maximum = -Infinity;
        for (let i = row * columns; i < (row + 1) * columns; i++)
          if (scores[i] > maximum) maximum = scores[i];
        stepRow(row, maximum);
      }
      for (let first = 0; first < rows; first += warpRows) {
        const last = Math.min(first + warpRows, rows);
        const any =
          rescale.of === 'rows' || alpha.subarray(first, last).some((factor) => factor < 1);
        multiplies.fill(!isFirst && any ? 1 : 0, first, last);
      }
      isFirst = false;
    },
  };
}

/** What a block of keys does to the sums of the blocks before it. */
export interface BlockRescale {
  readonly path: RunningMaximum;
  /** [128]: α in fp64. */
  readonly exactAlpha: Float64Array;
}

/** value · α in fp32, at the fp32 number nearest to value, plus what the difference contributes. */
export function emulatedRescale(value: number, alpha: number): number {
  const nearest = Math.fround(value);
  const product = Math.fround(nearest * alpha);
  return value === nearest ? product : product + (value - nearest) * alpha;
}
