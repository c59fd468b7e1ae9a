import { formats, ulp, type FormatName } from '../../../../formats/index.js';
import { rounderTo } from '../../../premises/declared-row.js';
import type { AdditionOrder } from './addition-orders.js';
import type { GradientTerms } from './gradient-terms.js';

/** Sums of tiles of terms, in order of heads and tiles. */
export interface TileSums {
  /** [chunks, rows, columns] */
  readonly values: Float64Array;
  readonly chunks: number;
  /** rows · columns */
  readonly size: number;
}

/** The sums that tiles of `terms` terms add to some rows of a gradient. */
export function tileSums(
  { factors, rows, heads, places, offsets, operand, columns }: GradientTerms,
  terms: number,
): TileSums {
  const tiles = Math.ceil(places / terms);
  const size = rows * columns;
  const values = new Float64Array(heads * tiles * size);
  for (let row = 0; row < rows; row++)
    for (let head = 0; head < heads; head++)
      for (let place = 0; place < places; place++) {
        const term = head * places + place;
        const factor = factors[row * heads * places + term];
        if (factor === 0) continue;
        const at = (head * tiles + Math.floor(place / terms)) * size + row * columns;
        for (let c = 0; c < columns; c++) values[at + c] += factor * operand[offsets[term] + c];
      }
  return { values, chunks: heads * tiles, size };
}

/** The way in which a sum is kept in a short format. */
export interface NarrowAccumulator {
  readonly format: FormatName;
  /** Factors of each tile's sum before it is added, and of the whole sum at the end. */
  readonly scales: readonly [first: number, last: number];
}

/** Sums in a short format, one rounding after each addition: [rows, columns]. */
export function narrowSums(
  { values, size }: TileSums,
  { format, scales: [first, last] }: NarrowAccumulator,
  order: AdditionOrder,
): Float64Array {
  const rounded = rounderTo(format, 'overflow');
  const sums = new Float64Array(size);
  for (let i = 0; i < size; i++) {
    for (const chunks of order) {
      let sum = 0;
      for (const chunk of chunks) {
        const added = values[chunk * size + i];
        if (added !== 0) sum = rounded(sum + first * added);
      }
      sums[i] += sum;
    }
    sums[i] *= last;
  }
  return sums;
}

/** Further errors that the roundings of such sums may have where terms are a little off. */
export interface NarrowErrors {
  /** An ulp of every partial sum; the variances of its roundings. */
  readonly worst: Float64Array;
  readonly variance: Float64Array;
}

/** Errors that the roundings of such sums may have, from the sizes of the partial sums. */
export function narrowErrors(
  { values, size }: TileSums,
  { format, scales: [first, last] }: NarrowAccumulator,
  order: AdditionOrder,
): NarrowErrors {
  const worst = new Float64Array(size);
  const variance = new Float64Array(size);
  for (let i = 0; i < size; i++)
    for (const chunks of order) {
      let sum = 0;
      for (const chunk of chunks) {
        const added = values[chunk * size + i];
        if (added === 0) continue;
        sum += first * added;
        const unit = Math.abs(last) * ulp(formats[format], sum);
        worst[i] += unit;
        variance[i] += unit ** 2 / 12;
      }
    }
  return { worst, variance };
}
