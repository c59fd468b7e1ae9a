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

/** A running maximum of a recipe, as `createRunningMaximum` says. */
class TileMaximum implements RunningMaximum {
  readonly subtracted: Float64Array;
  readonly before: Float64Array;
  readonly current: Float64Array;
  readonly largest: Float64Array;
  readonly alpha: Float64Array;
  readonly exactAlpha: Float64Array;
  readonly keeps: Uint8Array;
  readonly multiplies: Uint8Array;
  readonly #followed: RunningMaximum | null;
  readonly #scale: number;
  readonly #exactScale: number;
  readonly #exp2: (x: number) => number;
  readonly #rescale: Recipe['rescale'];
  readonly #rescaleThreshold: number;
  #isFirst = true;

  constructor(recipe: Recipe, followed: RunningMaximum | null) {
    const { queries } = recipe.tiling;
    this.subtracted = new Float64Array(queries);
    this.before = new Float64Array(queries);
    this.current = new Float64Array(queries);
    this.largest = new Float64Array(queries);
    this.alpha = new Float64Array(queries);
    this.exactAlpha = new Float64Array(queries);
    this.keeps = new Uint8Array(queries);
    this.multiplies = new Uint8Array(queries);
    this.#followed = followed;
    this.#scale = recipe.exponent.scale;
    this.#exactScale = exactExponentScale(recipe);
    this.#exp2 = exp2Units[recipe.exponential.unit];
    this.#rescale = recipe.rescale;
    this.#rescaleThreshold = Math.fround(recipe.rescale.threshold);
  }

  begin(): void {
    this.#isFirst = true;
    this.current.fill(-Infinity);
    this.largest.fill(-Infinity);
  }

  step(scores: Float64Array, rows: number, columns: number): void {
    for (let row = 0; row < rows; row++) {
      let maximum = -Infinity;
      for (let i = row * columns; i < (row + 1) * columns; i++)
        if (scores[i] > maximum) maximum = scores[i];
      this.#stepRow(row, maximum);
      const [before, subtracted] = [this.before[row], this.subtracted[row]];
      this.exactAlpha[row] = exactFactor(before, subtracted, this.#exactScale);
    }
    for (let first = 0; first < rows; first += warpRows) {
      const last = Math.min(first + warpRows, rows);
      const any =
        this.#rescale.of === 'rows' ||
        this.alpha.subarray(first, last).some((factor) => factor < 1);
      this.multiplies.fill(!this.#isFirst && any ? 1 : 0, first, last);
    }
    this.#isFirst = false;
  }

  #stepRow(row: number, blockMaximum: number): void {
    const { before, current, largest, subtracted, alpha, keeps } = this;
    const followed = this.#followed;
    before[row] = current[row];
    const own = Math.max(current[row], blockMaximum);
    const now = followed !== null && this.#isClose(row, own) ? followed.current[row] : own;
    current[row] = now;
    largest[row] = Math.max(largest[row], blockMaximum);
    subtracted[row] = now === -Infinity ? 0 : now;
    alpha[row] = 0;
    keeps[row] = 0;
    if (this.#isFirst) return;
    const above = this.#rescale.checksInfinity ? subtracted[row] : now;
    const { lag, rest } = this.#emulatedLag(row, above);
    alpha[row] = rest === 0 ? this.#exp2(lag) : this.#exp2(lag) * 2 ** rest;
    if (!this.#isKept(row, lag)) return;
    keeps[row] = 1;
    current[row] = before[row];
    subtracted[row] = before[row];
    alpha[row] = 1;
  }

  /** log2 of the kernel's α, from the nearest fp32 numbers, and the excess of the exact value over it. */
  #emulatedLag(row: number, above: number) {
    const { fround } = Math;
    const before = this.before[row];
    const [from, to] = [fround(before), fround(above)];
    // Without an earlier maximum there is no difference.
    const rest = Number.isFinite(from - to) ? before - above - (from - to) : 0;
    return { lag: fround(fround(from - to) * this.#scale), rest: rest * this.#exactScale };
  }

  #isKept(row: number, lag: number): boolean {
    const threshold = this.#rescaleThreshold;
    if (this.#followed === null) return threshold > 0 && lag >= -threshold;
    return this.#followed.keeps[row] === 1 && !(lag < -threshold);
  }

  #isClose(row: number, now: number): boolean {
    const followed = this.#followed;
    if (followed?.keeps[row] !== 0) return false;
    return Math.abs(now - followed.current[row]) * this.#exactScale <= closeMaxima;
  }
}

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
  return new TileMaximum(recipe, followed);
}

/** value · α in fp32, at the fp32 numbers nearest to both, plus the contributions of the differences. */
export function emulatedRescale(value: number, alpha: number): number {
  const [nearest, factor] = [Math.fround(value), Math.fround(alpha)];
  const product = Math.fround(nearest * factor);
  return value === nearest && factor === alpha
    ? product
    : product + (value * alpha - nearest * factor);
}
