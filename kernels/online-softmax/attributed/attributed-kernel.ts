import { lazily } from '../../../src/lazily.js';
import { type Problem, problemShape, type ProblemShape } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import { fa4Configuration, type Fa4Configuration } from '../../fa4/configuration.js';
import type { Fa4Format, InputPatterns } from '../../fa4/forward-formats.js';
import { forwardTiles, type ForwardTiles } from '../query-tiles.js';
import { type AttributedTileResult, createAttributedTile } from './attributed-tile.js';
import { type EmulatedTechniques, techniqueDefinitions, techniques } from './techniques.js';
import type { AttributedKernel, AttributedPiece } from '../../attributed-kernel.js';
import { checkChoices } from '../../run-groups.js';
import { blockWeights } from './weights.js';

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

/** A tile's results as every kernel model gives them. */
function pieceOf(
  { outputs, lse, lags, largestKeys, largestExponents, rowSums }: AttributedTileResult,
  { first, rows }: { readonly first: number; readonly rows: number },
  format: Fa4Format,
): AttributedPiece {
  const weights = largestExponents.map((exponent) => 2 ** exponent);
  return {
    firstRow: first,
    rows,
    outputs,
    lse,
    lags,
    largestWeights: {
      keys: largestKeys,
      weights,
      rounded: blockWeights(weights, format).rounded,
      divisors: rowSums,
    },
  };
}

/**
 * FlashAttention-4's forward on a problem with techniques that can be emulated or exact, a piece for
 * each tile of queries; see `createAttributedForward`.
 *
 * @param settingsOf the configuration as settings, by key
 * @throws RequestError for a problem that cannot be attributed and for a configuration out of range
 */
export function attributedFa4Kernel(
  problem: Problem,
  overrides: Partial<Fa4Configuration>,
  settingsOf: (configuration: Fa4Configuration) => AttributedKernel['settings'],
): AttributedKernel {
  const { shape, configuration, format, tiles, rowsOf } = createAttributedForward(
    problem,
    [],
    overrides,
  );
  return {
    model: 'fa4',
    shape,
    outFormat: configuration.outFormat,
    settings: settingsOf(configuration),
    techniques,
    definitions: techniqueDefinitions,
    pieces: tiles,
    rowsOf,
    prepareRuns: (choices) => {
      checkChoices('fa4', techniques, choices);
      const known = choices as readonly EmulatedTechniques[];
      const { runTile } = createAttributedForward(problem, known, configuration);
      return (piece) => pieceOf(runTile(piece), rowsOf(piece), format);
    },
  };
}

/**
 * Refuses variants of the kernel: which technique a bug belongs to is not a matter of emulating it.
 * @throws RequestError for settings with a variant other than `none`
 */
export function checkAttributedVariant(settings: ReadonlyMap<string, string>): void {
  const variant = settings.get('variant') ?? 'none';
  if (variant !== 'none')
    throw new RequestError(
      `variant is ${JSON.stringify(variant)}; the attribution of fa4 has no variants: leave it out`,
    );
}
