import { problemShape, type Problem, type ProblemShape } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import {
  type EmulatedTechniques,
  type AttributedKernel,
  type Technique,
  type TechniqueDefinition,
  techniques,
} from '../techniques.js';
import {
  attributedKernel,
  attributedTiles,
  commonDefinitions,
} from '../online-softmax/attributed/attributed-kernel.js';
import type { AttributedTileResult } from '../online-softmax/attributed/attributed-tile.js';
import type { ForwardTiles } from '../online-softmax/query-tiles.js';
import type { Recipe } from '../online-softmax/recipe.js';
import {
  fa4Configuration,
  type Fa4Configuration,
  type Fa4Format,
  type Fa4Overrides,
} from './configuration.js';
import { fa4Recipe, tileSetting } from './recipe.js';

/**
 * c is softmax scale · log2 e, m the running maximum, l the row sum, α the factor of a rescale.
 * `normalise` is the row's finish: the division and the LSE.
 */
const techniqueDefinitions: Readonly<Record<Technique, TechniqueDefinition>> = {
  ...commonDefinitions,
  'scale-subtract': {
    emulated:
      'x = fma(s, c, offset − m·c) in fp32 with c rounded to fp32, at the fp32 score nearest s',
    exact: 'x = (s − m)·c + offset, with c in fp64',
  },
  'exp2-hardware': {
    emulated:
      "in the unit's columns p = ex2.approx.ftz: its relative error at the fp32 x nearest x",
    exact: 'p = 2^x in these columns',
  },
  'exp2-polynomial': {
    emulated:
      "in the polynomial's columns p by software: its relative error at the fp32 x nearest x",
    exact: 'p = 2^x in these columns',
  },
  rescale: {
    emulated: 'α = ex2.approx.ftz of fp32 (m − m′)·c, and the fp32 products of α with O and l',
    exact: 'α = 2^((m − m′)·c) and its products in fp64',
  },
  'row-sum': {
    emulated:
      'four packed fp32 accumulators and their tree: the error on start and p rounded to fp32',
    exact: 'l + Σ p in fp64',
  },
  normalise: {
    emulated:
      "the row's finish: rcp.approx.ftz's relative error at the fp32 l nearest l and the fp32 product " +
      'with O; LSE = (m·c + (lg2.approx.ftz(l) − offset))·ln 2 in fp32, its error there',
    exact: 'O / l and LSE = (m·c + log2 l − offset)·ln 2 in fp64, with c in fp64',
  },
};

/** The forward of one problem under several choices of emulated techniques, in tiles. */
export interface AttributedForward extends ForwardTiles<AttributedTileResult> {
  readonly shape: ProblemShape;
  readonly configuration: Fa4Configuration;
  /** Format of the inputs. */
  readonly format: Fa4Format;
}

/** @throws RequestError for parts of a configuration that belong to no technique. */
function checkConfiguration({ splits, descale }: Fa4Configuration): void {
  if (splits !== 1)
    throw new RequestError(`splits is ${splits}; the attribution of fa4 takes 1, keys in one part`);
  for (const [name, value] of Object.entries(descale))
    if (value !== 1)
      throw new RequestError(
        `descale.${name} is ${value}; the attribution of fa4 takes 1: put it into the problem's scale or its V`,
      );
}

/** @throws RequestError as `createAttributedForward` */
function attributedRecipe(problem: Problem, configuration: Fa4Configuration): Recipe {
  checkConfiguration(configuration);
  return fa4Recipe(tileSetting(problem, configuration), problem.scale);
}

/**
 * FlashAttention-4's forward with each technique either as the GPU does it or exact, for each of the
 * choices; see `attributedTiles`.
 *
 * @param choices for each run the techniques that are emulated
 * @throws RequestError for a problem that the kernel does not take, for a configuration out of range,
 * and for one with split keys or descales
 */
export function createAttributedForward(
  problem: Problem,
  choices: readonly EmulatedTechniques[],
  overrides: Fa4Overrides = {},
): AttributedForward {
  const shape = problemShape(problem);
  const configuration = fa4Configuration(problem, shape, overrides);
  const recipe = attributedRecipe(problem, configuration);
  return {
    shape,
    configuration,
    format: recipe.format,
    ...attributedTiles(problem, shape, recipe, choices),
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
  overrides: Fa4Overrides,
  settingsOf: (configuration: Fa4Configuration) => AttributedKernel['settings'],
): AttributedKernel {
  const shape = problemShape(problem);
  const configuration = fa4Configuration(problem, shape, overrides);
  return attributedKernel(problem, shape, attributedRecipe(problem, configuration), {
    settings: settingsOf(configuration),
    techniques,
    definitions: techniqueDefinitions,
  });
}

/**
 * Refuses variants of the kernel: emulating techniques does not tell which one a bug belongs to.
 * @throws RequestError for settings with a variant other than `none`
 */
export function checkAttributedVariant(settings: ReadonlyMap<string, string>): void {
  const variant = settings.get('variant') ?? 'none';
  if (variant !== 'none')
    throw new RequestError(
      `variant is ${JSON.stringify(variant)}; the attribution of fa4 has no variants: leave it out`,
    );
}
