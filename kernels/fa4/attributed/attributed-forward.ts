import { lazily } from '../../../src/lazily.js';
import { problemShape, type Problem, type ProblemShape } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import { fa4Configuration, type Fa4Configuration } from '../forward-configuration.js';
import type { Fa4Format, InputPatterns } from '../forward-formats.js';
import { forwardTiles, type ForwardTiles } from '../forward-tiles.js';
import { createAttributedTile, type AttributedTileResult } from './attributed-tile.js';
import type { EmulatedTechniques } from './techniques.js';

/** The forward of one problem under several choices of emulated techniques, in tiles. */
export interface AttributedForward extends ForwardTiles<AttributedTileResult> {
  readonly shape: ProblemShape;
  readonly configuration: Fa4Configuration;
  /** Of the inputs. */
  readonly format: Fa4Format;
}

/** @throws RequestError for what has no part in any technique. */
function checkConfiguration({ splits, descale }: Fa4Configuration): void {
  if (splits !== 1)
    throw new RequestError(`splits is ${splits}; the attribution of fa4 takes 1, keys in one part`);
  for (const [name, value] of Object.entries(descale))
    if (value !== 1)
      throw new RequestError(
        `descale.${name} is ${value}; the attribution of fa4 takes 1: put it into the problem's scale or its V`,
      );
}

/**
 * FlashAttention-4's forward with each technique either as the GPU does it or exact, for each of the
 * choices: with all emulated the outputs and LSEs of `createFa4Forward` bit for bit, with none exact
 * attention to about 1e-13 of Σ p|v|. What a technique is, and what each combination means, is told in
 * techniques.ts. Memory beyond inputs is that of one tile for each choice.
 *
 * @param choices for each run the techniques that are emulated
 * @throws RequestError for a problem that the kernel does not take, for a configuration out of range,
 * and for one with split keys or descales
 */
export function createAttributedForward(
  problem: Problem,
  choices: readonly EmulatedTechniques[],
  overrides: Partial<Fa4Configuration> = {},
): AttributedForward {
  const shape = problemShape(problem);
  const configuration = fa4Configuration(problem, shape, overrides);
  checkConfiguration(configuration);
  // Which formats there are was checked with the configuration.
  const format = problem.q.format as Fa4Format;
  const { qkDim, vDim } = shape;
  const tile = lazily(() =>
    createAttributedTile(configuration, format, { qkDim, vDim }, problem.scale, choices),
  );
  return {
    shape,
    configuration,
    format,
    ...forwardTiles<AttributedTileResult, InputPatterns>(
      problem,
      shape,
      configuration.blockKeys,
      tile,
    ),
  };
}
