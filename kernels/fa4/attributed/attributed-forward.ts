import { problemShape, type Problem, type ProblemShape } from '../../../src/problem.js';
import { fa4Configuration, type Fa4Configuration } from '../forward-configuration.js';
import { forwardTiles, inputFormat, type ForwardTiles } from '../forward-tiles.js';
import { createAttributedTile, type AttributedTileResult } from './attributed-tile.js';
import type { EmulatedTechniques } from './techniques.js';

/** The forward of one problem under several choices of emulated techniques, in tiles. */
export interface AttributedForward extends ForwardTiles<AttributedTileResult> {
  readonly shape: ProblemShape;
  readonly configuration: Fa4Configuration;
}

/**
 * FlashAttention-4's forward with each technique either as the GPU does it or exact, for each of the
 * choices: with all emulated the outputs of `createFa4Forward` bit for bit, with none exact attention
 * to about 1e-13 of Σ p|v|. What a technique is, and what each combination means, is told in
 * techniques.ts. Memory beyond inputs is that of one tile for each choice.
 *
 * @param choices for each run the techniques that are emulated
 * @throws RequestError for a problem that the kernel does not take and for a configuration out of
 * range.
 */
export function createAttributedForward(
  problem: Problem,
  choices: readonly EmulatedTechniques[],
  overrides: Partial<Fa4Configuration> = {},
): AttributedForward {
  const shape = problemShape(problem);
  const configuration = fa4Configuration(problem, shape, overrides);
  const { qkDim, vDim } = shape;
  const tile = createAttributedTile(
    configuration,
    inputFormat(problem),
    { qkDim, vDim },
    problem.scale,
    choices,
  );
  return {
    shape,
    configuration,
    ...forwardTiles(problem, shape, configuration.blockKeys, () => tile),
  };
}
