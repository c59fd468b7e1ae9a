import {
  createTensorCoreTile,
  type MatrixProduct,
  type TensorCoreArithmetic,
  tensorCoreProduct,
  type TensorCoreTile,
} from '../../src/hardware/index.js';
import { lazily } from '../../src/reuse.js';
import type { Problem, ProblemShape } from '../../src/problem/index.js';
import {
  type ForwardPaths,
  type ForwardTile,
  type ForwardTileResult,
  forwardTiles,
  type ForwardTiles,
  kernelPaths,
  type PartialTileResult,
  type TileWork,
} from './query-tiles.js';
import type { InputPatterns } from './units.js';
import { createPlainForwardTile } from './plain/plain-tile.js';
import type { Recipe } from './recipe.js';
import { createSplitTile } from './split-tile.js';
import type { ForwardSteps } from './steps.js';
import { createForwardTile, fitsWebAssembly } from './webassembly/webassembly-tile.js';

/** A copy of patterns [rows][from] as [rows][to], zeros where it is wider. */
function widen(
  target: Uint8Array | Uint16Array | Uint32Array,
  source: ArrayLike<number>,
  from: number,
  to: number,
): void {
  target.fill(0);
  for (let i = 0; i < source.length; i++)
    target[Math.floor(i / from) * to + (i % from)] = source[i];
}

/**
 * `tensorCoreProduct` for operands of one format, in WebAssembly: the same bits, much faster. It keeps
 * the memory of the shapes it has met; make one for each problem.
 *
 * @returns a function that throws a RequestError for products that tiles do not compute
 */
function createTileProduct(): (
  arithmetic: TensorCoreArithmetic,
  product: MatrixProduct,
) => Uint32Array {
  const tiles = new Map<string, TensorCoreTile>();
  return (arithmetic, { m, n, k, aFormat, bFormat, a, bTransposed, c }) => {
    const columns = 8 * Math.ceil(n / 8);
    const key = [m, n, k, aFormat].join();
    let tile = tiles.get(key);
    if (tile === undefined) {
      tile = createTensorCoreTile(arithmetic, { rows: m, columns, inner: k, aFormat, bFormat });
      tiles.set(key, tile);
    }
    widen(tile.a, a, k, k);
    widen(tile.b, bTransposed, k, k);
    widen(tile.cBits, c, n, columns);
    tile.packA();
    tile.packTransposedB();
    tile.multiplyAccumulate();
    const result = new Uint32Array(m * n);
    for (let row = 0; row < m; row++)
      result.set(tile.cBits.subarray(row * columns, row * columns + n), row * n);
    return result;
  };
}

/** The forward of one problem, tile by tile. */
export interface Forward extends ForwardTiles<ForwardTileResult> {
  /** Runs a tile with some steps in place of the recipe's. */
  readonly runChanged: (tile: number, steps: Partial<ForwardSteps>) => ForwardTileResult;
  /** Runs a tile, keys in one part, without the rounding of the output to its format. */
  readonly runUnrounded: (tile: number) => PartialTileResult;
}

/** Execution of a forward, and its deviations from its recipe. */
interface ForwardOptions {
  /**
   * `plain`: instruction by instruction, much slower; default `webassembly`. Changed steps, and recipes
   * that the WebAssembly does not know, are computed step by step, with the matrix products in
   * WebAssembly unless `plain` is asked for.
   */
  readonly execution?: 'webassembly' | 'plain' | undefined;
  /** Steps in place of the recipe's, computed anew for every tile; null for none. */
  readonly steps?: ((tile: number) => Partial<ForwardSteps>) | null;
  readonly paths?: Partial<ForwardPaths> | undefined;
}

/**
 * The forward of a recipe on a problem, bit for bit: the same blocks in the same order, the same
 * instructions with the same rounding. Memory beyond inputs and outputs is that of one tile.
 */
export function createForward(
  problem: Problem,
  shape: ProblemShape,
  recipe: Recipe,
  options: ForwardOptions = {},
): Forward {
  const { qkDim, vDim } = shape;
  const dimensions = { qkDim, vDim };
  const { execution = 'webassembly', steps = null } = options;
  const paths = { ...kernelPaths, ...options.paths };
  type Work = TileWork<ForwardTileResult, InputPatterns>;

  function tilesOf<Result>(
    work: (tile: number) => TileWork<Result, InputPatterns>,
  ): ForwardTiles<Result> {
    return forwardTiles(problem, shape, recipe.tiling, work, paths);
  }
  function inSplits(tile: ForwardTile): Work {
    const { split, outFormat } = recipe;
    return split === null ? tile : createSplitTile(tile, split, outFormat, vDim);
  }
  const product = lazily(() => createTileProduct());
  function wholeTile(changed: Partial<ForwardSteps>): ForwardTile {
    const products = execution === 'plain' ? tensorCoreProduct : product();
    return createPlainForwardTile(recipe, dimensions, { steps: changed, product: products });
  }
  const steppedTile = (changed: Partial<ForwardSteps>): Work => inSplits(wholeTile(changed));

  // Made when needed: not where other threads do the work.
  const unchanged = lazily(() =>
    execution === 'webassembly' && fitsWebAssembly(recipe)
      ? inSplits(createForwardTile(recipe, dimensions))
      : steppedTile({}),
  );
  const tiles = tilesOf(steps === null ? unchanged : (tile) => steppedTile(steps(tile)));
  return {
    ...tiles,
    runChanged: (tile, changed) => tilesOf(() => steppedTile(changed)).runTile(tile),
    runUnrounded: (tile) => {
      const { begin, block, finishPartial } = wholeTile({});
      return tilesOf(() => ({ begin, block, finish: finishPartial })).runTile(tile);
    },
  };
}
