import { tensorCoreProduct } from '../../src/hardware/index.js';
import { lazily } from '../../src/lazily.js';
import { problemShape, type Problem, type ProblemShape } from '../../src/problem/index.js';
import { otherTileOfCta } from '../online-softmax/key-blocks.js';
import { exponentScale, fa4Configuration, type Fa4Configuration } from './configuration.js';
import type { Fa4Format, InputPatterns } from './forward-formats.js';
import {
  forwardTiles,
  type ForwardTiles,
  kernelPaths,
  type TileWork,
} from '../online-softmax/query-tiles.js';
import { createPlainForwardTile } from '../online-softmax/plain/plain-tile.js';
import { forwardSteps, type ForwardSteps, type TileSetting } from '../online-softmax/steps.js';
import type { ForwardTile, ForwardTileResult } from '../online-softmax/forward-tile.js';
import type { ForwardVariation } from './variation.js';
import { createForwardTile } from '../online-softmax/webassembly/webassembly-tile.js';
import { combineSteps } from './split-combine.js';
import { createSplitTile } from '../online-softmax/split-tile.js';
import { createTileProduct } from '../online-softmax/plain/tile-product.js';

/** The forward of one problem, tile by tile. */
export interface Fa4Forward extends ForwardTiles<ForwardTileResult> {
  readonly shape: ProblemShape;
  readonly configuration: Fa4Configuration;
}

/** How the forward deviates from FlashAttention-4's, and how it is computed. */
export interface Fa4ForwardOptions {
  /** What to choose otherwise than FlashAttention-4 would for this problem. */
  readonly configuration?: Partial<Fa4Configuration>;
  /**
   * `plain`: instruction by instruction, much slower; default `webassembly`. A variation is always
   * computed step by step, with the matrix products in WebAssembly unless `plain` is asked for.
   */
  readonly execution?: 'webassembly' | 'plain';
  /** What to do otherwise than FlashAttention-4 does. */
  readonly variation?: ForwardVariation;
}

/**
 * FlashAttention-4's forward on a problem, bit for bit: the same blocks in the same order, the same
 * instructions with the same rounding. Memory beyond inputs and outputs is that of one tile.
 *
 * Evidence: with sm_90's tensor cores, the outputs and LSEs that an H200 computed by the same
 * operations on 16-bit inputs (fixtures/attention); what differs on Blackwell and for fp8 is told by
 * `fa4Evidence`.
 *
 * @throws RequestError for a problem that the kernel does not take and for a configuration out of
 * range.
 */
export function createFa4Forward(problem: Problem, options: Fa4ForwardOptions = {}): Fa4Forward {
  const shape = problemShape(problem);
  const configuration = fa4Configuration(problem, shape, options.configuration);
  const { variation } = options;
  const { qkDim, vDim } = shape;
  const dimensions = { qkDim, vDim };
  const scale = exponentScale(problem.scale, configuration);
  const setting: TileSetting = {
    configuration,
    format: problem.q.format as Fa4Format,
    scale: variation?.scale?.(scale, problem.scale) ?? scale,
  };
  type Work = TileWork<ForwardTileResult, InputPatterns>;

  function tilesOf(work: (tile: number) => Work): ForwardTiles<ForwardTileResult> {
    const paths = { ...kernelPaths, ...variation?.paths };
    return forwardTiles(problem, shape, configuration.blockKeys, work, paths);
  }
  function inSplits(tile: ForwardTile): Work {
    if (configuration.splits === 1) return tile;
    return createSplitTile(tile, configuration, vDim, { ...combineSteps, ...variation?.combine });
  }
  const product = options.execution === 'plain' ? tensorCoreProduct : createTileProduct();
  function changedTile(steps: Partial<ForwardSteps>): Work {
    return inSplits(createPlainForwardTile(setting, dimensions, { steps, product }));
  }
  function variedTile({ steps }: ForwardVariation, tile: number): Work {
    const changes = steps?.({
      ...setting,
      kernel: forwardSteps(setting),
      softmaxScale: problem.scale,
      runOtherTile: (changed) => {
        const other = otherTileOfCta(tile, shape);
        if (other !== null) tilesOf(() => changedTile(changed)).runTile(other);
      },
    });
    return changedTile(changes ?? {});
  }

  // Made when it is needed: not where other threads do the work.
  const create = options.execution === 'plain' ? createPlainForwardTile : createForwardTile;
  const engine = lazily(() => inSplits(create(setting, dimensions)));
  const tiles = tilesOf(variation === undefined ? engine : (tile) => variedTile(variation, tile));
  return { shape, configuration, ...tiles };
}
