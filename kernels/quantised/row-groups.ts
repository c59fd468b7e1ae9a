import type { OperandGroups } from '../promises.js';
import type { Sequence } from '../../src/problem/index.js';

/** Rows of a warp's tile of Q and of K whose groups one thread holds, and the groups among them. */
const warpRows = {
  q: { rows: 32, groups: 8, perGroup: 1 },
  k: { rows: 64, groups: 4, perGroup: 2 },
};

/** The group of a row within its sequence. */
function groupIn(name: 'q' | 'k', groups: OperandGroups, block: number): (row: number) => number {
  if (groups === 'blocks') return (row) => Math.floor(row / block);
  const warp = warpRows[name];
  return (row) => Math.floor(row / warp.rows) * warp.groups + Math.floor((row % 8) / warp.perGroup);
}

/** The rows of each sequence, one behind the other. */
function stretchesOf(name: 'q' | 'k', rows: number, sequences: readonly Sequence[] | undefined) {
  if (sequences === undefined) return [{ first: 0, count: rows }];
  return sequences.map((one) =>
    name === 'q'
      ? { first: one.firstQuery, count: one.queries }
      : { first: one.firstKey, count: one.keys },
  );
}

/** The groups of a head's rows. */
export interface RowGroups {
  /** [rows]: the group of each row. */
  readonly of: Int32Array;
  readonly count: number;
}

/**
 * The groups of rows that share a factor, for every head alike; each sequence begins with a group of its own.
 * @param block rows of a block, for groups that are blocks
 */
export function rowGroups(
  name: 'q' | 'k',
  rows: number,
  { groups, block }: { readonly groups: OperandGroups; readonly block: number },
  sequences: readonly Sequence[] | undefined,
): RowGroups {
  const of = new Int32Array(rows);
  const groupOf = groupIn(name, groups, block);
  let count = 0;
  for (const { first, count: length } of stretchesOf(name, rows, sequences)) {
    let most = -1;
    for (let i = 0; i < length; i++) {
      const group = groupOf(i);
      most = Math.max(most, group);
      of[first + i] = count + group;
    }
    count += most + 1;
  }
  return { of, count };
}
