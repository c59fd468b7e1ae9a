import {
  createAllocator,
  instantiator,
  type PlacedStruct,
  type WorkingMemories,
} from '../../src/reuse.js';
import { type Operand, tileRows } from './operand.js';
import {
  binary,
  exponentFactors,
  tileMemory,
  type ExponentFactors,
} from './tile-kernels.generated.js';
import type { InterruptedRow, KeyRange, ProblemShape } from '../../src/problem/index.js';
import { log2eWords } from './logarithm-words.js';
import type { ScoreConstants } from './scores.js';

/** The WebAssembly loops of a tile. */
export interface TileKernels {
  readonly memory: WebAssembly.Memory;
  product(a: number, b: number, c: number, rows: number, inner: number, columns: number): void;
  productWithMagnitude(
    a: number,
    b: number,
    c: number,
    m: number,
    rows: number,
    inner: number,
    columns: number,
  ): void;
  rowProduct(row: number, b: number, c: number, inner: number): void;
  scaleRows(matrix: number, factors: number, rows: number): void;
  narrowRows(source: number, target: number, back: number, rows: number, columns: number): void;
  narrowColumns(source: number, target: number, back: number, rows: number): void;
  narrowProduct(
    a: number,
    b: number,
    c: number,
    ofRows: number,
    ofColumns: number,
    inner: number,
  ): void;
  accumulate(out: number, tile: number, factor: number, rows: number, columns: number): void;
  capScores(scores: number, count: number, factor: number): void;
  /** `tile` and `factors` are addresses of a `TileMemory` and of `ExponentFactors`. */
  weights(tile: number, factors: number, isAdded: boolean): void;
}

/** A block of the WebAssembly memory: where it is, and a view of it. */
export interface Block {
  readonly address: number;
  readonly view: Float64Array;
}

/**
 * Working memory for one tile of queries against one tile of keys and the fp64 kernels that work on
 * it. Everything is O(tile): no buffer depends on a sequence length.
 */
export interface TileEngine {
  readonly kernels: TileKernels;
  /** vDim rounded up to the kernels' multiple of 4. */
  readonly vStride: number;
  /** [64 × qkDim] */
  readonly queries: Block;
  /** [qkDim × 64]; [64 × qkDim] where few rows see the tile */
  readonly keysTransposed: Block;
  /** [64 × 64] raw scores, then weights. */
  readonly scores: Block;
  /** [64 × 64]: addends of the scores, after the softcap. */
  readonly addends: Block;
  /** [64 × vStride] */
  readonly values: Block;
  /** [vStride × 64]; [64 × vStride] where few rows see the tile */
  readonly valuesTransposed: Block;
  /** [64 × vStride] each: this tile's sums and the running ones. */
  readonly tileSum: Block;
  readonly tileMagnitude: Block;
  readonly sum: Block;
  readonly magnitude: Block;
  /** Address of the `TileMemory`: the blocks of scores and addends and the next seven, [64] each. */
  readonly tileMemory: number;
  readonly low: { readonly view: Int32Array };
  readonly high: { readonly view: Int32Array };
  readonly reference: Block;
  readonly factor: Block;
  readonly extent: Block;
  readonly maximum: Block;
  readonly tileTotal: Block;
  readonly factors: PlacedStruct<ExponentFactors>;
  /** A block of `length` of the spare numbers. */
  readonly block: (length: number) => Block;
}

const instantiate = instantiator<TileKernels>(binary, 'the oracle');

/**
 * Allocates the tiles for one pair of head dimensions.
 * @param spare number of fp64 numbers that `block` may give beside them
 */
export function createTileEngine(qkDim: number, vDim: number, spare = 0): TileEngine {
  const vStride = Math.max(4, Math.ceil(vDim / 4) * 4);
  const kernels = instantiate();
  const doubles = tileRows * (2 * qkDim + 2 * tileRows + 6 * vStride) + 6 * tileRows + spare;
  const { allocate, struct } = createAllocator(kernels.memory, 8 * doubles);
  const { buffer } = kernels.memory;
  const block = (length: number): Block => {
    const address = allocate(8 * length);
    return { address, view: new Float64Array(buffer, address, length) };
  };
  const integers = () => {
    const address = allocate(4 * tileRows);
    return { address, view: new Int32Array(buffer, address, tileRows) };
  };
  const scores = block(tileRows * tileRows);
  const addends = block(tileRows * tileRows);
  const ofRows = {
    low: integers(),
    high: integers(),
    reference: block(tileRows),
    factor: block(tileRows),
    extent: block(tileRows),
    maximum: block(tileRows),
    tileTotal: block(tileRows),
  };
  return {
    kernels,
    vStride,
    queries: block(tileRows * qkDim),
    keysTransposed: block(qkDim * tileRows),
    scores,
    addends,
    values: block(tileRows * vStride),
    valuesTransposed: block(vStride * tileRows),
    tileSum: block(tileRows * vStride),
    tileMagnitude: block(tileRows * vStride),
    sum: block(tileRows * vStride),
    magnitude: block(tileRows * vStride),
    ...ofRows,
    tileMemory: struct(tileMemory).write({
      scores: scores.address,
      addends: addends.address,
      low: ofRows.low.address,
      high: ofRows.high.address,
      reference: ofRows.reference.address,
      factor: ofRows.factor.address,
      extent: ofRows.extent.address,
      maximum: ofRows.maximum.address,
      sums: ofRows.tileTotal.address,
    }),
    factors: struct(exponentFactors),
    block,
  };
}

/** The result of `work`, called with the tiles for one pair of head dimensions, from memories that are used again. */
export function withTileEngine<Result>(
  memories: WorkingMemories,
  { qkDim, vDim }: Pick<ProblemShape, 'qkDim' | 'vDim'>,
  work: (engine: TileEngine) => Result,
): Result {
  return memories.lend(`tile ${qkDim} ${vDim}`, () => createTileEngine(qkDim, vDim), work);
}

/** Copies up to 64 rows of `dim` elements into a tile, zero beyond them. */
export function loadTile(
  tile: Float64Array,
  source: Float64Array,
  dim: number,
  stride: number,
): void {
  if (stride === dim) {
    tile.set(source);
    tile.fill(0, source.length);
  } else {
    tile.fill(0);
    for (let from = 0, to = 0; from < source.length; from += dim, to += stride)
      tile.set(source.subarray(from, from + dim), to);
  }
}

/** Rows of a tile: the first, and their number, both multiples of 4 as the loops take them. */
export interface TileRows {
  readonly first: number;
  readonly count: number;
  /** The rows one by one, where these are so few that transposing a tile for them costs more than their products; else null. */
  readonly few: readonly number[] | null;
}

/** The most rows that are multiplied one by one. */
const mostFew = 4;

/** The rows from the first that sees a place of the tile in the engine to the last; none if none does. */
export function seeingRows({ low, high }: TileEngine): TileRows {
  let first = 0;
  while (first < tileRows && low.view[first] >= high.view[first]) first += 1;
  let end = tileRows;
  while (end > first && low.view[end - 1] >= high.view[end - 1]) end -= 1;
  const begin = first & ~3;
  const few =
    end - first > mostFew ? null : Array.from({ length: end - first }, (_, i) => first + i);
  return { first: begin, count: first === tileRows ? 0 : Math.ceil((end - begin) / 4) * 4, few };
}

/** Raw scores of some of the 64 queries (loaded in the engine) against the tile of keys at `firstKey`. */
export function scoreTile(
  engine: TileEngine,
  keys: Operand,
  firstKey: number,
  constants: ScoreConstants,
  rows: TileRows,
) {
  const { kernels, queries, keysTransposed, scores } = engine;
  const { dim } = keys;
  const target = scores.address + 8 * tileRows * rows.first;
  const b = keysTransposed.address;
  if (rows.few === null) {
    keysTransposed.view.set(keys.columns(firstKey / tileRows));
    const first = queries.address + 8 * dim * rows.first;
    kernels.product(first, b, target, rows.count, dim, tileRows);
  } else {
    loadTile(keysTransposed.view, keys.tile(firstKey / tileRows), dim, dim);
    for (const row of rows.few)
      kernels.rowProduct(
        queries.address + 8 * dim * row,
        b,
        scores.address + 8 * tileRows * row,
        dim,
      );
  }
  if (constants.softcapped)
    kernels.capScores(target, tileRows * rows.count, constants.capFactorHigh);
}

/** The keys between the ranges that a row sees. */
function gapsOf(ranges: readonly KeyRange[]): KeyRange[] {
  return ranges.slice(1).map(({ begin }, i) => ({ begin: ranges[i].end, end: begin }));
}

/** A row of a [64 × 64] block. */
function rowOf({ view }: Block, row: number): Float64Array {
  return view.subarray(row * tileRows, (row + 1) * tileRows);
}

/** Rules by which `weightTile` turns scores into weights. */
interface WeightRules {
  readonly constants: ScoreConstants;
  /** Whether the engine's addends count. */
  readonly isAdded: boolean;
}

/**
 * Turns the scores of a tile into weights, in place. Rows see the places from `low` up to `high` but for
 * the gaps of those that are interrupted: a gap counts with the score of a key that its row sees, which
 * moves no maximum, until its weights are taken away.
 */
export function weightTile(
  engine: TileEngine,
  { constants: { factorHigh, factorLow }, isAdded }: WeightRules,
  interrupted: readonly InterruptedRow[],
): void {
  const { kernels, scores, addends, factors, tileTotal } = engine;
  for (const { row, ranges } of interrupted)
    for (const block of isAdded ? [scores, addends] : [scores]) {
      const ofRow = rowOf(block, row);
      for (const { begin, end } of gapsOf(ranges)) ofRow.fill(ofRow[ranges[0].begin], begin, end);
    }
  const addend = log2eWords();
  const words = { cHigh: factorHigh, cLow: factorLow, dHigh: addend.high, dLow: addend.low };
  kernels.weights(engine.tileMemory, factors.write(words), isAdded);
  for (const { row, ranges } of interrupted) {
    const ofRow = rowOf(scores, row);
    for (const { begin, end } of gapsOf(ranges)) ofRow.fill(0, begin, end);
    tileTotal.view[row] = ofRow.reduce((sum, weight) => sum + weight, 0);
  }
}
