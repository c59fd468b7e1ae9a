import type { Problem, ProblemShape } from './problem.js';

/** The place of a row of a problem: its sequence, head and query. */
export interface RowPlace {
  /** Its batch, or its number among the packed sequences. */
  readonly sequence: number;
  /** Counted within the batch. */
  readonly head: number;
  /** Counted within the sequence, before any selection of rows. */
  readonly query: number;
  /** Numbers of queries and keys of the sequence. */
  readonly queries: number;
  readonly keys: number;
  /** The first key of the sequence in k and v. */
  readonly firstKey: number;
}

/** The index of the last of `count` ascending beginnings that is at most x. */
function lastAtMost(count: number, begin: (index: number) => number, x: number): number {
  let low = 0;
  let high = count;
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if (begin(middle) <= x) low = middle;
    else high = middle;
  }
  return low;
}

/** The parts of a problem that determine the places of its rows. */
export type RowsOf = { readonly [Member in 'sequences' | 'rows']?: Problem[Member] | undefined };

/**
 * The place of each row, which masks, biases and slopes depend on.
 * @returns for a head counted over [batch, heads], and a query counted over the rows that the problem has
 */
export function rowPlaces(
  { sequences, rows }: RowsOf,
  { heads, queries, keys }: ProblemShape,
): (head: number, query: number) => RowPlace {
  const original = (head: number, query: number) =>
    rows === undefined ? query : rows.queries[head * queries + query];
  const ofHead = rows?.of ?? queries;
  if (sequences === undefined)
    return (head, query) => ({
      sequence: Math.floor(head / heads),
      head: head % heads,
      query: original(head, query),
      queries: ofHead,
      keys,
      firstKey: 0,
    });
  // Of sequences that begin at the same query all but the last are empty.
  return (head, query) => {
    const at = original(head, query);
    const index = lastAtMost(sequences.length, (i) => sequences[i].firstQuery, at);
    const sequence = sequences[index];
    return {
      sequence: index,
      head: head % heads,
      query: at - sequence.firstQuery,
      queries: sequence.queries,
      keys: sequence.keys,
      firstKey: sequence.firstKey,
    };
  };
}
