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
import { loadFactor, type FactorRows } from './pairs/factor-rows.js';
import { createPairMemory, type PairMemory } from './pairs/pair-memory.js';
import type { PairArithmetic } from './pair-arithmetic.js';

/** Number of rows of a head that have the same q or k, and the same dO or v, for each row. */
export interface AlikeRows {
  readonly scores: Float64Array;
  readonly products: Float64Array;
  /** The largest number of rows that have the same of both. */
  readonly most: number;
}

/**
 * Counts the rows of a head that are equal to each of its rows, itself among them: results computed from equal rows alone
 * err alike. Rows are compared by one number of each, so that others may count as equal by chance; that overstates their
 * errors.
 */
function countAlike(tensor: Tensor, head: number, rows: number, dim: number): Float64Array {
  const values = decodeTensor(tensor, head * rows * dim, (head + 1) * rows * dim);
  const numbers = new Float64Array(rows);
  const counts = new Map<number, number>();
  for (let row = 0; row < rows; row++) {
    let number = 0;
    for (let c = 0; c < dim; c++) number += values[row * dim + c] * Math.sin(c + 1);
    numbers[row] = number;
    counts.set(number, (counts.get(number) ?? 0) + 1);
  }
  return numbers.map((number) => counts.get(number)!);
}

/** Counts the rows of a head of two tensors that are equal. */
function alikeRows(
  ofScores: Tensor,
  ofProducts: Tensor,
  head: number,
  { rows, qkDim, vDim }: { readonly rows: number; readonly qkDim: number; readonly vDim: number },
): AlikeRows {
  const scores = countAlike(ofScores, head, rows, qkDim);
  const products = countAlike(ofProducts, head, rows, vDim);
  const most = scores.reduce((all, count, i) => Math.max(all, Math.min(count, products[i])), 1);
  return { scores, products, most };
}

/** Reads the facts about each pair of a problem that its error follows from. */
export interface PairReader {
  readonly problem: Problem;
  readonly dout: Tensor;
  readonly shape: ProblemShape;
  readonly memory: PairMemory;
  readonly mask: Mask;
  readonly addends: Addends | null;
  readonly kept: KeptWeights | null;
  /** Counts of equal rows of a head of queries, and of one of keys. */
  readonly alikeQueries: (head: number) => AlikeRows;
  readonly alikeKeys: (kvHead: number) => AlikeRows;
}

/** Keeps the last result. */
function lastOf<T>(make: (head: number) => T): (head: number) => T {
  let kept: { readonly head: number; readonly made: T } | null = null;
  return (head) => {
    if (kept?.head !== head) kept = { head, made: make(head) };
    return kept.made;
  };
}

/** @param arithmetic that of the kernel whose errors are summed */
export function createPairReader(
  problem: Problem,
  dout: Tensor,
  shape: ProblemShape,
  arithmetic: PairArithmetic,
): PairReader {
  const { queries, keys, qkDim, vDim } = shape;
  const addends = createAddends(problem, shape);
  const kept = keptWeights(problem, shape);
  const memory = createPairMemory(arithmetic, shape, {
    hasAddends: addends !== null,
    hasFactors: kept !== null,
  });
  return {
    problem,
    dout,
    shape,
    memory,
    mask: problemMask(problem, shape),
    addends,
    kept,
    alikeQueries: lastOf((head) =>
      alikeRows(problem.q, dout, head, { rows: queries, qkDim, vDim }),
    ),
    alikeKeys: lastOf((kvHead) =>
      alikeRows(problem.k, problem.v, kvHead, { rows: keys, qkDim, vDim }),
    ),
  };
}

/** A block of up to 64 query rows of a head. */
export interface QueryRows {
  /** Counted over [batch, heads], and over [batch, kv heads]. */
  readonly head: number;
  readonly kvHead: number;
  readonly first: number;
  readonly count: number;
  /** For each row the keys that it sees; none for rows that are left out. */
  readonly ranges: readonly (readonly KeyRange[])[];
}

/** Loads rows of a tensor into a factor's. */
function loadRows(
  { tile }: PairMemory,
  factor: FactorRows,
  tensor: Tensor,
  row: number,
  count: number,
): void {
  const { dim } = factor;
  loadFactor(tile.kernels, factor, decodeTensor(tensor, row * dim, (row + count) * dim));
}

/** Loads how many rows of a head are equal to each row from `first` on. */
function loadAlike(
  { alikeScores, alikeProducts, alikeBoth }: PairMemory['sides']['queries'],
  { scores, products }: AlikeRows,
  first: number,
): void {
  alikeScores.view.set(scores.subarray(first, first + tileRows));
  alikeProducts.view.set(products.subarray(first, first + tileRows));
  alikeBoth.view.forEach((_, i, both) => {
    both[i] = Math.min(alikeScores.view[i], alikeProducts.view[i]);
  });
}

/**
 * Loads a block of rows.
 * @param isLeftOut whether nothing is to be known of a row
 */
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
  loadRows(memory, memory.queries, problem.q, row, count);
  loadRows(memory, memory.dout, dout, row, count);
  loadAlike(memory.sides.queries, reader.alikeQueries(head), first);
  return {
    head,
    kvHead: Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize),
    first,
    count,
    ranges: Array.from({ length: count }, (_, i) =>
      isLeftOut(first + i) ? [] : mask.ranges(head, first + i),
    ),
  };
}

/** A tile of keys that a block of rows is walked over against. */
export interface KeyTile {
  readonly firstKey: number;
  readonly count: number;
  /** For each row the keys that it sees, within the tile. */
  readonly ranges: readonly (readonly KeyRange[])[];
}

/** Writes the addends of the scores of a tile, and the factors of its dropout. */
function readFeatures(
  reader: PairReader,
  { head, first, count }: QueryRows,
  firstKey: number,
): void {
  const { addends, kept, memory } = reader;
  const { known } = memory.tile;
  if (addends === null && kept === null) return;
  const isKept = new Uint8Array(tileRows).fill(1);
  for (let i = 0; i < count; i++) {
    const row = (of: Float64Array) => of.subarray(i * tileRows, (i + 1) * tileRows);
    if (known.addend !== null) addends?.addend(head, first + i, firstKey, row(known.addend));
    if (known.addendSize !== null) addends?.size(head, first + i, firstKey, row(known.addendSize));
    if (kept === null || known.factor === null) continue;
    kept.fill(head, first + i, firstKey, isKept);
    for (let j = 0; j < tileRows; j++) known.factor[i * tileRows + j] = isKept[j] / kept.share;
  }
}

const none: readonly KeyRange[] = [];

/** Walks over the pairs of a block that see one another, tile by tile, where a tile is wanted. */
export function forEachTile(
  reader: PairReader,
  block: QueryRows,
  visit: (tile: KeyTile) => void,
  isWanted: (firstKey: number) => boolean = () => true,
): void {
  const { problem, shape, memory } = reader;
  const { kvHead, ranges } = block;
  const [low, high] = [new Int32Array(tileRows), new Int32Array(tileRows)];
  const alike = reader.alikeKeys(kvHead);
  const span = spanOfRows(ranges);
  const start = Math.floor(span.begin / tileRows) * tileRows;
  for (let firstKey = start; firstKey < span.end; firstKey += tileRows) {
    const count = Math.min(tileRows, shape.keys - firstKey);
    const places = { begin: firstKey, end: firstKey + tileRows };
    const { isSeen, interrupted } = maskTile(ranges, places, low, high);
    if (!isSeen || !isWanted(firstKey)) continue;
    const row = kvHead * shape.keys + firstKey;
    loadRows(memory, memory.keys, problem.k, row, count);
    loadRows(memory, memory.values, problem.v, row, count);
    loadAlike(memory.sides.keys, alike, firstKey);
    memory.multiplyRows();
    readFeatures(reader, block, firstKey);
    const gapped = new Map(interrupted.map((view) => [view.row, view.ranges]));
    const seen = ranges.map((_, i) =>
      low[i] >= high[i] ? none : (gapped.get(i) ?? [{ begin: low[i], end: high[i] }]),
    );
    memory.tile.setRanges(seen);
    visit({ firstKey, count, ranges: seen });
  }
}
