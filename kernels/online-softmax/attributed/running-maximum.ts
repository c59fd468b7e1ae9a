import { exactExponentScale, type Recipe } from '../recipe.js';
import { exp2Units, warpRows } from '../units.js';

/** The path that a tile takes through the blocks of keys: one number per row; fp32 numbers on the kernel's own. */
export interface RunningMaximum {
  /** Subtrahend of the scores of this block: the maximum in use, 0 where that is −∞. */
  readonly subtracted: Float64Array;
  /** The maximum in use before this block. */
  readonly before: Float64Array;
  /** The maximum in use now. */
  readonly current: Float64Array;
  /** The largest score up to now, which the maximum in use may lag behind. */
  readonly largest: Float64Array;
  /** α as the GPU computes it. */
  readonly alpha: Float64Array;
  /** α in fp64. */
  readonly exactAlpha: Float64Array;
  /** Whether the row kept its maximum in use on this block: 1 or 0. */
  readonly keeps: Uint8Array;
  /** Whether the row's warp multiplies its outputs by α: any of its 32 rows has α < 1. */
  readonly multiplies: Uint8Array;
  readonly begin: () => void;
  /** Takes the scores [rows × columns] of the next block, −∞ where masked; `followed` has taken it already. */
  readonly step: (scores: Float64Array, rows: number, columns: number) => void;
}

/** The factor of an exact exponent; 0 where there was no maximum before. */
function exactFactor(before: number, subtracted: number, scale: number): number {
  return before === -Infinity ? 0 : 2 ** ((before - subtracted) * scale);
}

/** Maxima this close to the kernel's, in octaves, leave weights in the range of the kernel's. */
const closeMaxima = 2 ** -6;

/**
 * A recipe's running maximum of a tile's rows, with its decisions not to rescale. A NaN among the scores is dropped, as
 * PTX's max does.
 *
 * @param followed the kernel's own path, for scores that are not the kernel's; null for that path itself. Its maxima are
 *   taken where those of the scores are close. Where the kernel's scores are off by octaves they are not close: relative
 *   to them weights would leave the range of formats, which the kernel's never do. There the maximum is that of the
 *   scores, over the same blocks, and is raised also where it would lag by more than the kernel ever lets it.
 */
export function createRunningMaximum(
  recipe: Recipe,
  followed: RunningMaximum | null,
): RunningMaximum {
  const { tiling, exponent, exponential, rescale } = recipe;
  const { queries: tileQueries } = tiling;
  const { scale } = exponent;
  const exactScale = exactExponentScale(recipe);
  const exp2 = exp2Units[exponential.unit];
  const rescaleThreshold = Math.fround(rescale.threshold);
  const numbers = (): Float64Array => new Float64Array(tileQueries);
  const [subtracted, before, current, largest] = Array.from({ length: 4 }, numbers);
  const [alpha, exactAlpha] = Array.from({ length: 2 }, numbers);
  const keeps = new Uint8Array(tileQueries);
  const multiplies = new Uint8Array(tileQueries);
  let isFirst = true;

  /** log2 of the kernel's α, from the nearest fp32 numbers, and the excess of the exact value over it. */
  function emulatedLag(row: number, above: number) {
    const { fround } = Math;
    const [from, to] = [fround(before[row]), fround(above)];
    // Without an earlier maximum there is no difference.
    const rest = Number.isFinite(from - to) ? before[row] - above - (from - to) : 0;
    return { lag: fround(fround(from - to) * scale), rest: rest * exactScale };
  }

  function isKept(row: number, lag: number): boolean {
    if (followed === null) return rescaleThreshold > 0 && lag >= -rescaleThreshold;
    return followed.keeps[row] === 1 && !(lag < -rescaleThreshold);
  }

  function isClose(row: number, now: number): boolean {
    if (followed?.keeps[row] !== 0) return false;
    return Math.abs(now - followed.current[row]) * exactScale <= closeMaxima;
  }

  function stepRow(row: number, blockMaximum: number): void {
    before[row] = current[row];
    const own = Math.max(current[row], blockMaximum);
    const now = followed !== null && isClose(row, own) ? followed.current[row] : own;
    current[row] = now;
    largest[row] = Math.max(largest[row], blockMaximum);
    subtracted[row] = now === -Infinity ? 0 : now;
    alpha[row] = 0;
    keeps[row] = 0;
    if (isFirst) return;
    const { lag, rest } = emulatedLag(row, rescale.checksInfinity ? subtracted[row] : now);
    alpha[row] = rest === 0 ? exp2(lag) : exp2(lag) * 2 ** rest;
    if (!isKept(row, lag)) return;
    keeps[row] = 1;
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
    exactAlpha,
    keeps,
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
        exactAlpha[row] = exactFactor(before[row], subtracted[row], exactScale);
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

/** value · α in fp32, at the fp32 numbers nearest to both, plus the contributions of the differences. */
export function emulatedRescale(value: number, alpha: number): number {
  const [nearest, factor] = [Math.fround(value), Math.fround(alpha)];
  const product = Math.fround(nearest * factor);
  return value === nearest && factor === alpha
    ? product
    : product + (value * alpha - nearest * factor);
}
