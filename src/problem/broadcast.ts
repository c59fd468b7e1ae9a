import { rowPlaces, type RowsOf } from './places.js';
import type { ProblemShape } from './problem.js';

/**
 * Strides of element [batch, head, query, key] of the whole shape in a tensor that broadcasts to it: its
 * sizes, from the last on, are those or 1.
 */
export interface BroadcastStrides {
  readonly batch: number;
  readonly head: number;
  readonly query: number;
  readonly key: number;
}

/** The strides of a tensor with at most four dimensions, 0 along broadcast ones. */
export function broadcastStrides(shape: readonly number[]): BroadcastStrides {
  const sizes = [1, 1, 1, 1, ...shape].slice(-4);
  const strides = [0, 0, 0, 0];
  let stride = 1;
  for (let axis = 3; axis >= 0; axis--) {
    strides[axis] = sizes[axis] === 1 ? 0 : stride;
    stride *= sizes[axis];
  }
  return { batch: strides[0], head: strides[1], query: strides[2], key: strides[3] };
}

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
