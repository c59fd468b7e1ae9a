import { clipRanges, problemMask, type KeyRange } from '../../../../problem/index.js';
import type { GradientQuantityName } from '../../gradient-quantities.js';
import { backwardRows } from './backward-row.js';
import type { Replayed } from './replay.js';

/** Some queries and keys of every head. */
export interface ScoreTile {
  readonly queries: KeyRange;
  readonly keys: KeyRange;
}

/** Factors and rows that a kernel multiplies in the place of a tile's own. */
export interface TileUse {
  /** The source of the factors, P or dS, and whether rows and columns are exchanged; null for zeros. */
  readonly factors: { readonly from: ScoreTile; readonly isTransposed: boolean } | null;
  /** Number of rows by which Q and dO, or K, are off. */
  readonly rowsOff: number;
}

/**
 * Factors of a tile of a head, [queries, keys] of its own, 0 where nothing is seen.
 * @param rowOf rows whose ranges are within the tile's keys
 */
function factorsOf(
  { queries, keys }: ScoreTile,
  head: number,
  rowOf: ReturnType<typeof backwardRows>,
  of: 'weights' | 'scores',
): Float64Array {
  const width = keys.end - keys.begin;
  const made = new Float64Array((queries.end - queries.begin) * width);
  for (let query = queries.begin; query < queries.end; query++) {
    const row = rowOf(head, query);
    const at = (query - queries.begin) * width - keys.begin;
    for (const { begin, end } of row.ranges)
      for (let key = begin; key < end; key++) made[at + key] = row[of][key];
  }
  return made;
}

/** Rows of queries of a tile at a time. */
const stripe = 64;

/** The rows of a tile, some at a time, with those that their factors are from. */
function* stripes(tile: ScoreTile, from: ScoreTile, isWhole: boolean) {
  const { begin, end } = tile.queries;
  for (let first = begin; first < end; first += isWhole ? end - begin : stripe) {
    const last = isWhole ? end : Math.min(first + stripe, end);
    const off = from.queries.begin - begin;
    yield {
      own: { queries: { begin: first, end: last }, keys: tile.keys },
      from: isWhole ? from : { queries: { begin: first + off, end: last + off }, keys: from.keys },
    };
  }
}

/** The share of one tile of all heads in a gradient, in the gradient's shape, with the tile used rightly or in another way. */
export function tileShare(
  { failed, operands }: Pick<Replayed, 'failed' | 'operands'>,
  name: GradientQuantityName,
  tile: ScoreTile,
  { factors, rowsOff }: TileUse = {
    factors: { from: tile, isTransposed: false },
    rowsOff: 0,
  },
): Float64Array {
  const { problem, measured } = failed;
  const { batch, heads, groupSize, queries, keys, qkDim, vDim } = measured.shape;
  const share = new Float64Array(measured.gradients[name].exact.values.length);
  if (factors === null) return share;
  const dim = name === 'dv' ? vDim : qkDim;
  const rows = { dq: operands.k, dk: operands.q, dv: operands.dout }[name];
  const scale = name === 'dv' ? 1 : problem.scale;
  const { ranges } = problemMask(problem, measured.shape);
  const { begin, end } = factors.from.keys;
  const rowOf = backwardRows(problem, measured, operands, {
    ranges: (head, query) => clipRanges(ranges(head, query), begin, end),
  });
  for (let head = 0; head < batch * heads; head++) {
    const firstKey = Math.floor(head / groupSize) * keys;
    const firstQuery = head * queries;
    for (const { own, from } of stripes(tile, factors.from, factors.isTransposed)) {
      const values = factorsOf(from, head, rowOf, name === 'dv' ? 'weights' : 'scores');
      const width = from.keys.end - from.keys.begin;
      const height = from.queries.end - from.queries.begin;
      for (let query = own.queries.begin; query < own.queries.end; query++)
        for (let key = own.keys.begin; key < own.keys.end; key++) {
          const [i, j] = [query - own.queries.begin, key - own.keys.begin];
          const [row, column] = factors.isTransposed ? [j, i] : [i, j];
          if (row >= height || column >= width) continue;
          const factor = scale * values[row * width + column];
          if (factor === 0) continue;
          const isOfQueries = name === 'dq';
          const to = isOfQueries ? firstQuery + query : firstKey + key;
          const at = (isOfQueries ? firstKey + key : firstQuery + query) + rowsOff;
          for (let c = 0; c < dim; c++) share[to * dim + c] += factor * rows[at * dim + c];
        }
    }
  }
  return share;
}
