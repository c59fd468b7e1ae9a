import { broadcastStrides } from './broadcast.js';
import { rowPlaces, type RowsOf } from './places.js';
import type { ProblemShape } from './problem.js';

/**
 * The places of a problem's pairs in a tensor that broadcasts to [batch, heads, queries, keys], such as masks and
 * biases.
 * @returns for a head counted over [batch, heads] and a query, a function of the key, counted over those of all
 * sequences
 */
export function broadcastPlaces(
  sizes: readonly number[],
  rows: RowsOf,
  shape: ProblemShape,
): (head: number, query: number) => (key: number) => number {
  const strides = broadcastStrides(sizes);
  const placeOf = rowPlaces(rows, shape);
  return (head, query) => {
    const place = placeOf(head, query);
    const row =
      place.sequence * strides.batch + place.head * strides.head + place.query * strides.query;
    return (key) => row + (key - place.firstKey) * strides.key;
  };
}

/** The most pairs that share an element of such a tensor, and how many of them are in one row. */
export function broadcastTerms(
  sizes: readonly number[],
  { sequences }: RowsOf,
  { batch, heads, queries, keys }: ProblemShape,
): { readonly terms: number; readonly ofKeys: number } {
  const strides = broadcastStrides(sizes);
  const times = (stride: number, size: number) => (stride === 0 ? size : 1);
  const ofKeys = times(strides.key, keys);
  const terms =
    times(strides.batch, sequences?.length ?? batch) *
    times(strides.head, heads) *
    times(strides.query, queries) *
    ofKeys;
  return { terms, ofKeys };
}
