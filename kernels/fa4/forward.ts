import { lazily } from '../../src/lazily.js';
import { problemShape, type Problem, type ProblemShape } from '../../src/problem.js';
import { fa4Configuration, type Fa4Configuration } from './forward-configuration.js';
import { createPlainForwardTile } from './forward-plain-tile.js';
import type { ForwardTileResult } from './forward-tile.js';
import { forwardTiles, inputFormat, type ForwardTiles } from './forward-tiles.js';
import { createForwardTile } from './forward-webassembly-tile.js';

/** The forward of one problem, tile by tile. */
export interface Fa4Forward extends ForwardTiles<ForwardTileResult> {
  readonly shape: ProblemShape;
  readonly configuration: Fa4Configuration;
}

export interface Fa4ForwardOptions {
  /** What to choose otherwise than FlashAttention-4 would for this problem. */
  readonly configuration?: Partial<Fa4Configuration>;
  /** `plain`: instruction by instruction, much slower; default `webassembly`. */
  readonly execution?: 'webassembly' | 'plain';
}

/**
 * FlashAttention-4's forward on a problem, bit for bit: the same blocks in the same order, the same
 * instructions with the same rounding. Memory beyond inputs and outputs is that of one tile.
 *
 * Evidence: with sm_90's tensor cores, the outputs and LSEs that an H200 computed by the same
 * operations (fixtures/attention); what differs on Blackwell is told by `fa4Evidence`.
 *
 * @throws RequestError for a problem that the kernel does not take and for a configuration out of
 * range.
 */
export function createFa4Forward(problem: Problem, options: Fa4ForwardOptions = {}): Fa4Forward {
  const shape = problemShape(problem);
  const configuration = fa4Configuration(problem, shape, options.configuration);
  const { qkDim, vDim } = shape;
  const scale = Math.fround(problem.scale * Math.LOG2E);
  const create = options.execution === 'plain' ? createPlainForwardTile : createForwardTile;
  // Made when it is needed: not where other threads do the work.
  const engine = lazily(() => create(configuration, inputFormat(problem), { qkDim, vDim }, scale));
  return {
    shape,
    configuration,
    ...forwardTiles(problem, shape, configuration.blockKeys, engine),
  };
}
