import type { RandomValues } from '../../properties/problems/values.js';
import {
  keysOf,
  type KeyRange,
  type Mask,
  type Problem,
  type ProblemShape,
  type Tensor,
} from '../../src/problem/index.js';

/** Disjoint ranges of some keys: gaps and stretches of lengths from one key to two tiles. */
function scatteredRanges(keys: number, random: RandomValues): KeyRange[] {
  const ranges: KeyRange[] = [];
  const length = () => 2 ** random.integer(0, 7) + random.integer(0, 5);
  let next = random.integer(0, 1) * length();
  while (next < keys) {
    const end = Math.min(keys, next + length());
    ranges.push({ begin: next, end });
    next = end + length();
  }
  return ranges;
}

/** A mask of a random list of ranges for each query of each head; one query in eight sees nothing. */
export function scatteredMask(
  { batch, heads, queries, keys }: ProblemShape,
  random: RandomValues,
): Mask {
  const rows = Array.from({ length: batch * heads * queries }, () =>
    random.integer(0, 7) === 0 ? [] : scatteredRanges(keys, random),
  );
  return { ranges: (head, query) => rows[head * queries + query] };
}

function pickedRows(
  { data, format, shape }: Tensor,
  first: number,
  rows: readonly number[],
): Tensor {
  const dim = shape[shape.length - 1];
  const picked = data.slice(0, rows.length * dim);
  rows.forEach((row, i) => {
    for (let c = 0; c < dim; c++) picked[i * dim + c] = data[(first + row) * dim + c];
  });
  return { format, shape: [1, 1, rows.length, dim], data: picked };
}

/** One query of a head with the keys that a mask shows it, gathered, and no mask: the same exact row. */
export function gatheredRow(
  problem: Problem,
  shape: ProblemShape,
  mask: Mask,
  head: number,
  query: number,
): Problem {
  const { heads, kvHeads, groupSize, queries, keys } = shape;
  const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
  const visible = [...keysOf(mask.ranges(head, query))];
  return {
    ...problem,
    q: pickedRows(problem.q, head * queries, [query]),
    k: pickedRows(problem.k, kv * keys, visible),
    v: pickedRows(problem.v, kv * keys, visible),
    causal: false,
    window: null,
  };
}
