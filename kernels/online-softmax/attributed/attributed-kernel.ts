import type { Problem, ProblemShape } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import { lazily } from '../../../src/reuse.js';
import { checkChoices } from '../../run-groups.js';
import {
  techniques,
  type AttributedKernel,
  type AttributedPiece,
  type EmulatedTechniques,
  type Technique,
  type TechniqueDefinition,
} from '../../techniques.js';
import { forwardTiles, type ForwardTiles } from '../query-tiles.js';
import type { Recipe } from '../recipe.js';
import type { InputFormat, InputPatterns } from '../units.js';
import { createAttributedTile, type AttributedTileResult } from './attributed-tile.js';
import { blockWeights } from './weights.js';

/** The techniques that are alike in every online softmax on tensor cores; a kernel defines its others. */
export const commonDefinitions = {
  'qk-accumulate': {
    emulated: "scores by the tensor cores' chain of fused sums",
    exact: 'scores q·k in fp64',
  },
  'p-round': {
    emulated: "p rounded once to the input's format, for the product with V; l sums p itself",
    exact: 'P·V takes p itself',
  },
  'pv-accumulate': {
    emulated:
      "O + P·V by the tensor cores' chain: its error on O rounded to fp32 and P to the format",
    exact: 'O + P·V in fp64',
  },
  'output-round': {
    emulated: "rounded once to the input's format",
    exact: 'not rounded',
  },
} as const satisfies Partial<Record<Technique, TechniqueDefinition>>;

/** The techniques of FlashAttention-2 and 3: all but a software exp2. */
export const hardwareTechniques: readonly Technique[] = techniques.filter(
  (name) => name !== 'exp2-polynomial',
);

/** Technique definitions of a kernel without a software exp2. */
export type HardwareDefinitions = Readonly<
  Record<Exclude<Technique, 'exp2-polynomial'>, TechniqueDefinition>
>;

/**
 * The techniques that are alike in FlashAttention-2 and 3. c is softmax scale · log2 e, m the running maximum, l the
 * row sum, α the factor of a rescale.
 */
export const hardwareDefinitions = {
  ...commonDefinitions,
  'exp2-hardware': {
    emulated: "p = exp2f, the unit's ex2.approx: its relative error at the fp32 x nearest x",
    exact: 'p = 2^x',
  },
  rescale: {
    emulated: 'α = exp2f of fp32 (m − m′)·c, and the fp32 products of α with O and l',
    exact: 'α = 2^((m − m′)·c) and its products in fp64',
  },
  'row-sum': {
    emulated:
      'four threads a row, each one fp32 addition after the other, and their butterfly at the end: the ' +
      'error on sums and p rounded to fp32',
    exact: 'l + Σ p in fp64',
  },
} as const satisfies Partial<Record<Technique, TechniqueDefinition>>;

/** @throws RequestError for parts of a recipe that belong to no technique. */
function checkRecipe({ kernel, split, finish, values }: Recipe): void {
  if (split !== null)
    throw new RequestError(
      `the attribution of ${kernel} takes keys in one part; leave splits at 1`,
    );
  if (finish.normalise !== 'at-the-end' || values.sum !== 'chain')
    throw new RequestError(
      `the attribution does not know ${kernel}, which normalises its output after every block of keys`,
    );
}

/**
 * The forward of a recipe with each technique either as the GPU does it or exact, for each of the choices: with all emulated the outputs and LSEs of
 * `createForward` bit for bit, with none exact attention to about 1e-13 of Σ p|v|. `EmulatedTechniques` explains each combination. Memory beyond
 * inputs is that of one tile for each choice.
 *
 * @param choices for each run the techniques that are emulated
 * @throws RequestError for a recipe with split keys or with an output normalised after every block
 */
export function attributedTiles(
  problem: Problem,
  shape: ProblemShape,
  recipe: Recipe,
  choices: readonly EmulatedTechniques[],
): ForwardTiles<AttributedTileResult> {
  checkRecipe(recipe);
  const tile = lazily(() => createAttributedTile(recipe, shape, choices));
  return forwardTiles<AttributedTileResult, InputPatterns>(problem, shape, recipe.tiling, tile);
}

/** A tile's results in the form that every kernel model gives. */
function pieceOf(
  { outputs, lse, lags, largestKeys, largestExponents, rowSums }: AttributedTileResult,
  { first, rows }: { readonly first: number; readonly rows: number },
  format: InputFormat,
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

/** Description of the attributed forward of a kernel. */
export interface AttributedSetting {
  /** Every setting of the model with its value. */
  readonly settings: AttributedKernel['settings'];
  readonly techniques: readonly Technique[];
  readonly definitions: Readonly<Record<string, TechniqueDefinition>>;
}

/**
 * The forward of a recipe on a problem with techniques that can be emulated or exact, a piece for each
 * tile of queries.
 *
 * @throws RequestError as `attributedTiles`
 */
export function attributedKernel(
  problem: Problem,
  shape: ProblemShape,
  recipe: Recipe,
  { settings, techniques, definitions }: AttributedSetting,
): AttributedKernel {
  const { tiles, rowsOf } = attributedTiles(problem, shape, recipe, []);
  return {
    model: recipe.kernel,
    shape,
    outFormat: recipe.outFormat,
    settings,
    techniques,
    definitions,
    pieces: tiles,
    rowsOf,
    prepareRuns: (choices) => {
      checkChoices(recipe.kernel, techniques, choices);
      const known = choices as readonly EmulatedTechniques[];
      const { runTile } = attributedTiles(problem, shape, recipe, known);
      return (piece) => pieceOf(runTile(piece), rowsOf(piece), recipe.format);
    },
  };
}
