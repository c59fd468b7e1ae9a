import { levels, type AttentionReference } from '../../../oracles/index.js';
import { formats, smallestNormal, ulp, type FormatName } from '../../formats/index.js';
import type { KernelBound } from '../bounds/index.js';
import { ErrorPool, type ErrorPoolState, type NearlyEqual } from './error-pool.js';

/** The errors of the output's rows that are projected, and their possible causes. */
export interface RowErrors {
  readonly reference: AttentionReference;
  readonly out: Float64Array;
  readonly outputFormat: FormatName;
  readonly bound: KernelBound;
  /** Groups of weights that round alike. */
  readonly weightGroups: NearlyEqual;
  /** Groups of outputs that round alike. */
  readonly groups: NearlyEqual;
}

/** The approximate number of outputs of a block that do not round alike. */
const likelyGroups = 4096;

/** Sums of the errors of some rows, projected on the directions of some tiles of keys. */
export class KeyTileStatistics {
  /** Σ r·X, Σ X² and Σ r², by tile. */
  readonly signed: Float64Array;
  readonly norm: Float64Array;
  readonly squares: Float64Array;
  /** Σ of squared random accumulation errors, Σ of systematic ones. */
  readonly #accumulation: Float64Array;
  readonly #systematic: Float64Array;
  /** Pools with a channel for each tile. */
  readonly #weights: ErrorPool;
  readonly #outputs: ErrorPool;
  readonly #ones: Float64Array;
  readonly #errors: Float64Array;
  readonly #isAdmitted: Uint8Array;

  /** @param weightGroups groups of weights that round alike, few enough for a slot each */
  constructor(tiles: number, weightGroups: NearlyEqual) {
    const numbers = () => new Float64Array(tiles);
    this.signed = numbers();
    this.norm = numbers();
    this.squares = numbers();
    this.#accumulation = numbers();
    this.#systematic = numbers();
    this.#weights = new ErrorPool(tiles, 8, weightGroups.size);
    this.#outputs = new ErrorPool(tiles, likelyGroups);
    this.#ones = numbers().fill(1);
    this.#errors = numbers();
    this.#isAdmitted = new Uint8Array(tiles);
  }

  /** Adds the sums over other rows. */
  merge(other: KeyTileStatistics): void {
    this.#weights.merge(other.#weights.view(), this.#ones);
    this.#outputs.merge(other.#outputs.view(), this.#ones);
    const theirs = other.#sums();
    this.#sums().forEach((sums, i) => sums.forEach((x, t) => (sums[t] = x + theirs[i][t])));
  }

  clear(): void {
    this.#weights.clear();
    this.#outputs.clear();
    for (const sums of this.#sums()) sums.fill(0);
  }

  /** The bound that |Σ r·X| of a tile exceeds with probability at most several times 2·exp(−deviations²/2). */
  tolerance(tile: number, deviations: number): number {
    return (
      this.#weights.tolerance(deviations, tile) +
      this.#outputs.tolerance(deviations, tile) +
      deviations * Math.sqrt(this.#accumulation[tile]) +
      this.#systematic[tile]
    );
  }

  /** Adds the errors of weights, projected on each tile's direction. */
  addWeights(errors: ErrorPoolState): void {
    this.#weights.merge(errors, this.#ones);
  }

  /**
   * Adds the error of row `row` projected on each tile's direction, [rows × vDim], without the errors of its weights.
   * Adds nothing for a row that no statistic admits: NaN, infinities (also among its inputs, for then no weights are
   * collected), no keys, a direction that is zero or whose square overflows.
   */
  addRow(
    { reference, out, outputFormat, bound, groups }: RowErrors,
    row: number,
    directions: readonly Float64Array[],
  ): void {
    if (levels[reference.level[row]] === 'special') return;
    const { isCoarse, ...ofRow } = bound.row(row);
    if (isCoarse || !(ofRow.keys > 0)) return;
    const { typicalWeight, addition, normalisation, floor, keys, declared } = ofRow;
    const { values, magnitude: magnitudes } = reference.quantities.out;
    const { vDim } = reference.shape;
    const [first, end] = [row * vDim, (row + 1) * vDim];
    const isAdmitted = this.#isAdmitted;
    directions.forEach((direction, t) => {
      let signed = 0;
      let norm = 0;
      let squares = 0;
      let magnitude = 0;
      let own = 0;
      for (let at = first; at < end; at++) {
        const x = direction[at];
        const exact = values[at];
        const error = out[at] - exact;
        signed += error * x;
        squares += error * error;
        norm += x * x;
        magnitude += magnitudes[at] * Math.abs(x);
        own += Math.abs(exact * x);
      }
      isAdmitted[t] = Number.isFinite(signed) && norm > 0 && norm < Infinity ? 1 : 0;
      if (isAdmitted[t] === 0) return;
      this.signed[t] += signed;
      this.norm[t] += norm;
      this.squares[t] += squares;
      this.#accumulation[t] += keys * (addition * magnitude) ** 2;
      this.#systematic[t] +=
        (typicalWeight + normalisation) * own +
        floor * Math.sqrt(norm * vDim) +
        (2 * declared.ofWeights + declared.ofMagnitude) * magnitude;
    });
    if (!isAdmitted.includes(1)) return;
    const table = formats[outputFormat];
    const smallest = smallestNormal(table);
    const errors = this.#errors;
    for (let at = first; at < end; at++) {
      const exact = values[at];
      const size = Math.abs(exact);
      const half = ulp(table, Math.min(size, table.maxFinite)) / 2;
      const signedHalf = half * Math.sign(exact);
      for (let t = 0; t < errors.length; t++) {
        const x = isAdmitted[t] === 1 ? directions[t][at] : 0;
        errors[t] = signedHalf * x;
        this.#systematic[t] += declared.halves * half * Math.abs(x);
      }
      // Subnormal outputs are as far apart as the smallest normal ones.
      this.#outputs.addAll(groups.group(size < smallest ? size + smallest : size), errors);
    }
  }

  #sums(): readonly Float64Array[] {
    return [this.signed, this.norm, this.squares, this.#accumulation, this.#systematic];
  }
}
