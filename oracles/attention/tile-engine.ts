import { lazily } from '../../src/lazily.js';
import { tileRows } from './operand.js';
import { binary } from './tile-kernels.generated.js';

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
