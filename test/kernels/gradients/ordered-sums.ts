import {
  decodeToFloat32,
  encodeFromFloat32,
  formats,
  type FormatName,
} from '../../../src/formats/index.js';
import { seededRandom } from '../features/index.js';

/** The orders in which correct kernels add what a gradient is the sum of. */
export const sumOrders = ['ascending', 'descending', 'tiles', 'any', 'pairwise'] as const;
/**
 * One of {@link sumOrders}: term by term from the first or from the last; tiles of 64 terms on their own, then these in order, or
 * in any order as atomic adds come; halves of halves.
 */
export type SumOrder = (typeof sumOrders)[number];

/** The terms of one row of a gradient: factors, and where the rows that they multiply begin. */
export interface SumTerms {
  readonly factors: Float32Array;
  readonly offsets: Int32Array;
  /** Terms of a head, where tiles begin anew; default all. */
  readonly ofHead?: number;
}

/** Rounds fp32 numbers to a format and back, in place. */
export function roundTo(format: FormatName, values: Float32Array): Float32Array {
  if (format === 'fp32' || format === 'fp64') return values;
  decodeToFloat32(encodeFromFloat32(formats[format], values), formats[format], values);
  return values;
}

/** Terms that are added before they join the others, in orders by tiles. */
const usualTerms = 64;

/** What a sum is kept in. */
export interface Accumulator {
  readonly format: FormatName;
  /** Terms that are added in fp32 before they join it; default 1. */
  readonly terms?: number;
  /** Default: as the law says. */
  readonly order?: SumOrder;
  /** Rows in succession that have one order where that is any; default 1. */
  readonly rows?: number;
}

/** How sums are made. */
export interface SumLaw {
  readonly order: SumOrder;
  /** What a sum is rounded to after each addition. */
  readonly accumulator: Accumulator;
  /** Of the order `any`. */
  readonly seed: number;
}

/** Sums rows times factors in an order, in fp32: [dim] of each call. */
export function orderedSums(
  { order: usual, accumulator: law, seed }: SumLaw,
  dim: number,
): (terms: SumTerms, rows: Float32Array) => Float32Array {
  const random = seededRandom(seed);
  const { format: accumulator, terms: joined = 1, order = usual, rows: sharing = 1 } = law;
  let calls = 0;
  let drawnOf: number[] = [];
  const isNarrow = accumulator !== 'fp32' && joined === 1;
  const tileTerms = joined === 1 ? usualTerms : joined;
  const add = (sum: Float32Array, other: Float32Array) => {
    for (let c = 0; c < dim; c++) sum[c] += other[c];
    return roundTo(accumulator, sum);
  };

  /** Term by term; the product is not rounded, as fused and tensor-core products are not. */
  function sequential({ factors, offsets }: SumTerms, rows: Float32Array, places: Int32Array) {
    const sum = new Float32Array(dim);
    for (const place of places) {
      const factor = factors[place];
      const at = offsets[place];
      for (let c = 0; c < dim; c++) sum[c] += factor * rows[at + c];
      if (isNarrow) roundTo(accumulator, sum);
    }
    return sum;
  }

  function pairwise(terms: SumTerms, rows: Float32Array, places: Int32Array): Float32Array {
    if (places.length <= 2) return sequential(terms, rows, places);
    const half = places.length >> 1;
    return add(
      pairwise(terms, rows, places.subarray(0, half)),
      pairwise(terms, rows, places.subarray(half)),
    );
  }

  function byTiles(terms: SumTerms, rows: Float32Array, places: Int32Array): Float32Array {
    const { ofHead = terms.factors.length } = terms;
    const tilesOfHead = Math.max(1, Math.ceil(ofHead / tileTerms));
    const heads = ofHead === 0 ? 0 : Math.ceil(terms.factors.length / ofHead);
    const tileOf = (place: number) =>
      Math.floor(place / ofHead) * tilesOfHead + Math.floor((place % ofHead) / tileTerms);
    const tiles: Int32Array[] = Array.from({ length: heads * tilesOfHead }, (_, tile) =>
      places.filter((place) => tileOf(place) === tile),
    );
    if (order === 'descending') tiles.reverse();
    if (order === 'any' && calls++ % sharing === 0) drawnOf = tiles.map(random);
    const drawn = tiles.map((tile, i) => ({ tile, key: drawnOf[i] ?? 0 }));
    drawn.sort((a, b) => a.key - b.key);
    return drawn.reduce<Float32Array>(
      (sum, { tile }) => add(sum, sequential(terms, rows, tile)),
      new Float32Array(dim),
    );
  }

  function inOrder(terms: SumTerms, rows: Float32Array, places: Int32Array): Float32Array {
    if (joined > 1) return byTiles(terms, rows, places);
    if (order === 'ascending') return sequential(terms, rows, places);
    if (order === 'descending') return sequential(terms, rows, places.reverse());
    return order === 'pairwise' ? pairwise(terms, rows, places) : byTiles(terms, rows, places);
  }

  return (terms, rows) => {
    // What is not seen adds nothing; NaN is no 0.
    let count = 0;
    const places = new Int32Array(terms.factors.length);
    for (let at = 0; at < places.length; at++) if (terms.factors[at] !== 0) places[count++] = at;
    return inOrder(terms, rows, places.subarray(0, count));
  };
}
