import { tileRows } from '../attention/operand.js';
import {
  createTileEngine,
  type Block,
  type TileEngine,
  type TileKernels,
} from '../attention/tile-engine.js';

/** The loops of assembly/gradients.ts beside those of the forward; test/oracles/gradients/tile-definitions.ts defines them. */
interface GradientKernels extends TileKernels {
  capSlopes(scores: number, slopes: number, count: number, factor: number): void;
  multiplyBy(target: number, factors: number, count: number): void;
  rowProducts(weights: number, products: number, rows: number, sums: number, sizes: number): void;
  differentiate(
    weights: number,
    products: number,
    scales: number,
    rows: number,
    total: number,
    mean: number,
    size: number,
  ): void;
  productWithSizes(
    a: number,
    m: number,
    b: number,
    c: number,
    n: number,
    rowStride: number,
    innerStride: number,
    columns: number,
  ): void;
}

/** Working memory of the oracle of gradients: all of it O(tile), beside that of the forward. */
export interface GradientEngine {
  readonly tile: TileEngine;
  readonly kernels: GradientKernels;
  /** qkDim rounded up to the kernels' multiple of 4; that of vDim is `tile.vStride`. */
  readonly qkStride: number;
  /** [64 × vStride] */
  readonly dout: Block;
  /** [64 × qkStride] each. */
  readonly queryRows: Block;
  readonly keyRows: Block;
  /** [64 × 64] each: dP, then dS and dT; P·(|dP| + Σ P|dP|); P after dropout; the factors of dropout; slopes. */
  readonly products: Block;
  readonly scales: Block;
  readonly applied: Block;
  readonly factors: Block;
  readonly slopes: Block;
  /** [64 × the larger stride] each: a tile of a result, and the sizes of its terms. */
  readonly sum: Block;
  readonly size: Block;
  /** [64] each: the row sum, Σ P dP and Σ P|dP|; and the contributions of a tile to the last two. */
  readonly total: Block;
  readonly mean: Block;
  readonly meanSize: Block;
}

/** Allocates the tiles for one pair of head dimensions. */
export function createGradientEngine(qkDim: number, vDim: number): GradientEngine {
  const qkStride = Math.max(4, Math.ceil(qkDim / 4) * 4);
  const vStride = Math.max(4, Math.ceil(vDim / 4) * 4);
  const widest = Math.max(qkStride, vStride);
  const spare = tileRows * (5 * tileRows + 2 * qkStride + vStride + 2 * widest + 3);
  const tile = createTileEngine(qkDim, vDim, spare);
  const square = () => tile.block(tileRows * tileRows);
  const column = () => tile.block(tileRows);
  return {
    tile,
    kernels: tile.kernels as GradientKernels,
    qkStride,
    dout: tile.block(tileRows * vStride),
    queryRows: tile.block(tileRows * qkStride),
    keyRows: tile.block(tileRows * qkStride),
    products: square(),
    scales: square(),
    applied: square(),
    factors: square(),
    slopes: square(),
    sum: tile.block(tileRows * widest),
    size: tile.block(tileRows * widest),
    total: column(),
    mean: column(),
    meanSize: column(),
  };
}
