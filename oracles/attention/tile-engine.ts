import { lazily } from '../../src/lazily.js';
import { type Operand, tileRows } from './operand.js';
import { binary } from './tile-kernels.generated.js';
import type { InterruptedRow, KeyRange } from '../../src/problem/index.js';
import type { ScoreConstants } from './scores.js';

interface TileKernels {
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
  accumulate(out: number, tile: number, factor: number, rows: number, columns: number): void;
  capScores(scores: number, count: number, factor: number): void;
  weights(
    scores: number,
    rows: number,
    columns: number,
    cHigh: number,
    cLow: number,
    low: number,
    high: number,
    reference: number,
    factor: number,
    extent: number,
    maximum: number,
    sums: number,
  ): void;
}

/** A block of the WebAssembly memory: where it is, and a view of it. */
interface Block {
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
  /** [qkDim × 64] */
  readonly keysTransposed: Block;
  /** [64 × 64] raw scores, then weights. */
  readonly scores: Block;
  /** [64 × vStride] */
  readonly values: Block;
  /** [vStride × 64] */
  readonly valuesTransposed: Block;
  /** [64 × vStride] each: this tile's sums and the running ones. */
  readonly tileSum: Block;
  readonly tileMagnitude: Block;
  readonly sum: Block;
  readonly magnitude: Block;
  /** [64] each. */
  readonly reference: Block;
  readonly factor: Block;
  readonly extent: Block;
  readonly maximum: Block;
  readonly tileTotal: Block;
  readonly low: { readonly address: number; readonly view: Int32Array };
  readonly high: { readonly address: number; readonly view: Int32Array };
}

/** The module is compiled once, and what the engine learns of its loops serves every tile. */
const compiled = lazily(() => new WebAssembly.Module(Buffer.from(binary, 'base64')));

/** Allocates the tiles for one pair of head dimensions. */
export function createTileEngine(qkDim: number, vDim: number): TileEngine {
  const vStride = Math.max(4, Math.ceil(vDim / 4) * 4);
  const abort = () => {
    throw new Error('the WebAssembly tile kernels aborted');
  };
  const instance = new WebAssembly.Instance(compiled(), { env: { abort } });
  const kernels = instance.exports as unknown as TileKernels;
  const doubles = tileRows * (2 * qkDim + tileRows + 6 * vStride) + 6 * tileRows;
  const start = 65536;
  kernels.memory.grow(Math.ceil((doubles * 8) / 65536) + 1);
  let next = start;
  const block = (length: number): Block => {
    const address = next;
    next += length * 8;
    return { address, view: new Float64Array(kernels.memory.buffer, address, length) };
  };
  const integers = () => {
    const { address } = block(tileRows / 2);
    return { address, view: new Int32Array(kernels.memory.buffer, address, tileRows) };
  };
  return {
    kernels,
    vStride,
    queries: block(tileRows * qkDim),
    keysTransposed: block(qkDim * tileRows),
    scores: block(tileRows * tileRows),
    values: block(tileRows * vStride),
    valuesTransposed: block(vStride * tileRows),
    tileSum: block(tileRows * vStride),
    tileMagnitude: block(tileRows * vStride),
    sum: block(tileRows * vStride),
    magnitude: block(tileRows * vStride),
    reference: block(tileRows),
    factor: block(tileRows),
    extent: block(tileRows),
    maximum: block(tileRows),
    tileTotal: block(tileRows),
    low: integers(),
    high: integers(),
  };
}

/** Copies rows [first, first + 64) of a [rows × dim] array into a tile, zero beyond the end. */
export function loadTile(
  tile: Float64Array,
  source: Float64Array,
  first: number,
  dim: number,
  stride: number,
): void {
  const rows = Math.min(tileRows, source.length / dim - first);
  tile.fill(0);
  if (stride === dim) tile.set(source.subarray(first * dim, (first + rows) * dim));
  else
    for (let i = 0; i < rows; i++)
      tile.set(source.subarray((first + i) * dim, (first + i + 1) * dim), i * stride);
}

/** Copies rows [first, first + 64) of a [rows × dim] array into a [dim × 64] tile, zero beyond the end. */
export function loadTransposedTile(
  tile: Float64Array,
  source: Float64Array,
  first: number,
  dim: number,
): void {
  const rows = Math.min(tileRows, source.length / dim - first);
  if (rows < tileRows) tile.fill(0);
  for (let i = 0; i < rows; i++) {
    let at = (first + i) * dim;
    for (let t = i; t < dim * tileRows; t += tileRows) tile[t] = source[at++];
  }
}

/** Raw scores of 64 queries (loaded in the engine) against the tile of keys at `firstKey`. */
export function scoreTile(
  engine: TileEngine,
  keys: Operand,
  firstKey: number,
  constants: ScoreConstants,
) {
  const { kernels, queries, keysTransposed, scores } = engine;
  loadTransposedTile(keysTransposed.view, keys.values, firstKey, keys.dim);
  kernels.product(
    queries.address,
    keysTransposed.address,
    scores.address,
    tileRows,
    keys.dim,
    tileRows,
  );
  if (constants.softcapped)
    kernels.capScores(scores.address, tileRows * tileRows, constants.capFactorHigh);
}

/** The keys between the ranges that a row sees. */
function gapsOf(ranges: readonly KeyRange[]): KeyRange[] {
  return ranges.slice(1).map(({ begin }, i) => ({ begin: ranges[i].end, end: begin }));
}

/**
 * Turns the scores of a tile into weights, in place. Rows see the places from `low` up to `high` but for
 * the gaps of those that are interrupted: a gap counts with the score of a key that its row sees, which
 * moves no maximum, until its weights are taken away.
 */
export function weightTile(
  engine: TileEngine,
  constants: ScoreConstants,
  interrupted: readonly InterruptedRow[],
): void {
  const { kernels, scores, low, high, reference, factor, extent, maximum, tileTotal } = engine;
  const rowOf = (row: number) => scores.view.subarray(row * tileRows, (row + 1) * tileRows);
  for (const { row, ranges } of interrupted) {
    const ofRow = rowOf(row);
    for (const { begin, end } of gapsOf(ranges)) ofRow.fill(ofRow[ranges[0].begin], begin, end);
  }
  kernels.weights(
    scores.address,
    tileRows,
    tileRows,
    constants.factorHigh,
    constants.factorLow,
    low.address,
    high.address,
    reference.address,
    factor.address,
    extent.address,
    maximum.address,
    tileTotal.address,
  );
  for (const { row, ranges } of interrupted) {
    const ofRow = rowOf(row);
    for (const { begin, end } of gapsOf(ranges)) ofRow.fill(0, begin, end);
    tileTotal.view[row] = ofRow.reduce((sum, weight) => sum + weight, 0);
  }
}
