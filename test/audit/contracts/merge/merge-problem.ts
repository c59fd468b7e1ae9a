import type { FormatName } from '../../../../src/formats/index.js';
import type { Part } from '../../../../src/audit/index.js';
import { firstRowOf } from '../../../../src/audit/index.js';
import type { ProblemShape } from '../../../../src/problem/index.js';

/** Results of two halves of the keys, to be merged: O as [heads, rows, dim] and natural LSEs as [heads, rows]. */
export interface MergeProblem {
  readonly heads: number;
  readonly rows: number;
  readonly dim: number;
  /** The format that the merged O is stored in. */
  readonly format: FormatName;
  readonly halves: readonly [Half, Half];
}

/** Results of half of the keys. */
export interface Half {
  readonly out: Float64Array;
  readonly lse: Float64Array;
}

/** The sizes of a merge, as those of attention without keys. */
export function mergeShape({ heads, rows, dim }: MergeProblem): ProblemShape {
  const none = { keys: 0, qkDim: 0 };
  return { ...none, batch: 1, heads, kvHeads: heads, groupSize: 1, queries: rows, vDim: dim };
}

/** A part for each head. */
export function headParts({ heads, rows }: MergeProblem): readonly Part[] {
  return Array.from({ length: heads }, (_, head) => ({ head, firstRow: 0, rows }));
}

/** The rows of a part. */
export function partOfMerge(problem: MergeProblem, part: Part): MergeProblem {
  const first = firstRowOf(part, mergeShape(problem));
  const end = first + part.rows;
  const { dim, halves } = problem;
  const cut = ({ out, lse }: Half): Half => ({
    out: out.slice(first * dim, end * dim),
    lse: lse.slice(first, end),
  });
  return { ...problem, heads: 1, rows: part.rows, halves: [cut(halves[0]), cut(halves[1])] };
}
