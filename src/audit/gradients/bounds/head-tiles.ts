import { decodeTensor } from '../../../formats/index.js';
import {
  keptWeights,
  maskTile,
  problemMask,
  spanOfRows,
  type KeptWeights,
  type KeyRange,
  type Mask,
  type Problem,
  type ProblemShape,
  type Tensor,
} from '../../../problem/index.js';
import { createAddends, tileRows, type Addends } from '../../bounds/index.js';
import { emptyPair, type Pair } from './pair-errors.js';
import { loadFactor, type FactorRows, type PairMemory } from './pair-sums.js';

/** What tells of each pair of a problem what its error follows from. */
export interface PairReader {
  readonly problem: Problem;
  readonly dout: Tensor;
  readonly shape: ProblemShape;
  readonly memory: PairMemory;
  readonly mask: Mask;
  readonly addends: Addends | null;
  readonly kept: KeptWeights | null;
  readonly keptFactor: number;
}

export function createPairReader(
  problem: Problem,
  dout: Tensor,
  shape: ProblemShape,
  memory: PairMemory,
): PairReader {
  const kept = keptWeights(problem, shape);
  return {
    problem,
    dout,
    shape,
    memory,
    mask: problemMask(problem, shape),
    addends: createAddends(problem, shape),
    kept,
    keptFactor: 1 / (kept?.share ?? 1),
  };
}

/** A block of up to 64 query rows of a head. */
export interface QueryRows {
  /** Counted over [batch, heads], and over [batch, kv heads]. */
  readonly head: number;
  readonly kvHead: number;
  readonly first: number;
  readonly count: number;
  /** Of each row: the keys that it sees; none for rows that are left out. */
  readonly ranges: readonly (readonly KeyRange[])[];
  /** Of each row: ‖q‖ and ‖dO‖, rounded up. */
  readonly queryNorms: Float64Array;
  readonly doutNorms: Float64Array;
}

/** Rounds up what norms in fp64 may be off. */
const up = 1 + 2 ** -40;

/** Loads rows of a tensor into a factor's. @returns the norms of the rows, rounded up */
function loadRows(factor: FactorRows, tensor: Tensor, row: number, count: number): Float64Array {
  const { dim, stride, values } = factor;
  loadFactor(factor, decodeTensor(tensor, row * dim, (row + count) * dim));
  return Float64Array.from({ length: tileRows }, (_, i) =>
    i < count ? Math.hypot(...values.view.subarray(i * stride, i * stride + dim)) * up : 0,
  );
}

/** Loads a block of rows. @param isLeftOut whether nothing is to be known of a row */
export function loadQueries(
  reader: PairReader,
  head: number,
  first: number,
  isLeftOut: (row: number) => boolean,
): QueryRows {
  const { problem, dout, shape, memory, mask } = reader;
  const { queries, heads, kvHeads, groupSize } = shape;
  const count = Math.min(tileRows, queries - first);
  const row = head * queries + first;
  return {
    head,
    kvHead: Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize),
    first,
    count,
    ranges: Array.from({ length: count }, (_, i) =>
      isLeftOut(first + i) ? [] : mask.ranges(head, first + i),
    ),
    queryNorms: loadRows(memory.queries, problem.q, row, count),
    doutNorms: loadRows(memory.dout, dout, row, count),
  };
}

/** A tile of keys that a block of rows is walked over against. */
export interface KeyTile {
  readonly firstKey: number;
  readonly count: number;
}

/** What is done with the pairs of a block. */
export interface PairVisitor {
  /** `i` and `j` count within the tile. */
  readonly pair: (i: number, j: number, pair: Pair) => void;
  readonly begin?: () => void;
  readonly end?: (tile: KeyTile) => void;
}

const emptyRoom = new Float64Array(0);

/** Walks over the pairs of a block that see one another, tile by tile. */
export function forEachPair(
  reader: PairReader,
  block: QueryRows,
  { pair: visit, begin, end }: PairVisitor,
): void {
  const { problem, shape, memory, addends, kept, keptFactor } = reader;
  const { head, kvHead, first, ranges, count } = block;
  const pair = emptyPair();
  const [low, high] = [new Int32Array(tileRows), new Int32Array(tileRows)];
  const added = addends === null ? emptyRoom : new Float64Array(tileRows);
  const sizes = addends === null ? emptyRoom : new Float64Array(tileRows);
  const isKept = new Uint8Array(tileRows).fill(1);
  const span = spanOfRows(ranges);
  const start = Math.floor(span.begin / tileRows) * tileRows;
  for (let firstKey = start; firstKey < span.end; firstKey += tileRows) {
    const keys = Math.min(tileRows, shape.keys - firstKey);
    const places = { begin: firstKey, end: firstKey + tileRows };
    const { isSeen, interrupted } = maskTile(ranges, places, low, high);
    if (!isSeen) continue;
    const row = kvHead * shape.keys + firstKey;
    const keyNorms = loadRows(memory.keys, problem.k, row, keys);
    const valueNorms = loadRows(memory.values, problem.v, row, keys);
    memory.multiplyRows();
    begin?.();
    const gapped = new Map(interrupted.map((view) => [view.row, view.ranges]));
    for (let i = 0; i < count; i++) {
      const seen = gapped.get(i) ?? [{ begin: low[i], end: high[i] }];
      if (low[i] >= high[i]) continue;
      addends?.addend(head, first + i, firstKey, added);
      addends?.size(head, first + i, firstKey, sizes);
      kept?.fill(head, first + i, firstKey, isKept);
      for (const range of seen)
        for (let j = range.begin; j < range.end; j++) {
          const at = i * tileRows + j;
          pair.dot = memory.scores.view[at];
          pair.product = memory.products.view[at];
          pair.keyNorm = keyNorms[j];
          pair.valueNorm = valueNorms[j];
          pair.addend = addends === null ? 0 : added[j];
          pair.addendSize = addends === null ? 0 : sizes[j];
          pair.factor = kept === null ? 1 : isKept[j] * keptFactor;
          visit(i, j, pair);
        }
    }
    end?.({ firstKey, count: keys });
  }
}
