import { problemShape, type Problem, type ProblemShape } from '../../src/problem/index.js';
import type { KernelModel, KernelSettings, PreparedKernel } from '../kernel-model.js';
import { attributeLumped } from '../lumped-attribution.js';
import { checkKeys, choiceValue } from '../setting-values.js';
import { createForward } from './forward.js';
import type { ForwardTileResult, ForwardTiles } from './query-tiles.js';
import type { Recipe } from './recipe.js';
import { exp2Units } from './units.js';

/** The pieces of a forward: its tiles. */
export function preparedForward(
  { tiles, rowsOf, runTile }: Pick<ForwardTiles<ForwardTileResult>, 'tiles' | 'rowsOf' | 'runTile'>,
  { shape, outFormat, settings, evidence }: Omit<PreparedKernel, 'pieces' | 'run'>,
): PreparedKernel {
  return {
    shape,
    outFormat,
    pieces: tiles,
    settings,
    evidence,
    run: (piece) => {
      const { first, rows } = rowsOf(piece);
      const { out, lse, rescales, counters } = runTile(piece);
      return { firstRow: first, rows, out, lse, rescales, counters: { ...counters } };
    },
  };
}

/** A problem with a model's recipe for it. */
export interface RecipeOfProblem {
  readonly shape: ProblemShape;
  readonly recipe: Recipe;
  /** The configuration as settings, by key. */
  readonly settings: PreparedKernel['settings'];
  /** Evidence for the bits, a line each. */
  readonly evidence: readonly string[];
}

/**
 * The recipes of a kernel whose only setting is the architecture, by problem and settings.
 *
 * @param architectures those that are modelled; the first is taken where none is given
 */
export function recipeByArchitecture<Architecture extends string>(
  { name, settings }: Pick<KernelModel, 'name' | 'settings'>,
  architectures: readonly [Architecture, ...Architecture[]],
  make: (
    problem: Problem,
    shape: ProblemShape,
    architecture: Architecture,
  ) => Pick<RecipeOfProblem, 'recipe' | 'evidence'>,
): (problem: Problem, texts: KernelSettings) => RecipeOfProblem {
  return (problem, texts) => {
    checkKeys(name, settings, texts);
    const given = texts.get('architecture') ?? architectures[0];
    const architecture = choiceValue('architecture', given, architectures);
    const shape = problemShape(problem);
    return { shape, settings: { architecture }, ...make(problem, shape, architecture) };
  };
}

/** The pieces of a recipe's forward on a problem: its tiles. */
export function preparedRecipe(
  problem: Problem,
  { shape, recipe, settings, evidence }: RecipeOfProblem,
): PreparedKernel {
  const forward = createForward(problem, shape, recipe);
  return preparedForward(forward, { shape, outFormat: recipe.outFormat, settings, evidence });
}

/** The errors of a recipe of one part, with the output rounding alone separated. */
export function attributedRecipe(
  problem: Problem,
  { shape, recipe, settings }: RecipeOfProblem,
): ReturnType<KernelModel['attribute']> {
  const forward = createForward(problem, shape, recipe);
  return attributeLumped(problem, {
    model: recipe.kernel,
    shape,
    outFormat: recipe.outFormat,
    settings,
    pieces: forward.tiles,
    rowsOf: forward.rowsOf,
    unrounded: (piece) => {
      const { out, lse } = forward.runUnrounded(piece);
      return { out: Float64Array.from(out), lse: Float64Array.from(lse) };
    },
  });
}

/** The exponentials of a kernel without a polynomial: all by one unit. */
export function unitExponentials(
  unit: Recipe['exponential']['unit'],
): ReturnType<KernelModel['exponentials']> {
  return [{ name: unit, place: 'The special function unit', share: 1, exp2: exp2Units[unit] }];
}
