import { isBeyondFloat32, type FormatName } from '../../src/formats/index.js';
import type { Problem } from '../../src/problem/index.js';
import type { TechniqueDefinition } from '../techniques.js';

/** The sources of error of the textbook kernels, in the order in which they act on a row. */
const naiveTechniques = [
  'input-round',
  'qk-accumulate',
  'score-round',
  'scale-subtract',
  'softcap',
  'bias',
  'exp',
  'row-sum',
  'normalise',
  'p-round',
  'pv-accumulate',
  'output-round',
] as const;
export type NaiveTechnique = (typeof naiveTechniques)[number];

/**
 * m is the largest score of a row, p its exponentials, l their sum, w = p / l; a sink is one more score and
 * exponential. Dropout multiplies w by 1/(1 − p_drop), or 0.
 */
export const naiveTechniqueDefinitions: Readonly<Record<NaiveTechnique, TechniqueDefinition>> = {
  'input-round': {
    emulated: 'fp64 inputs rounded to fp32',
    exact: 'inputs as they are',
    // Reading inputs that are fp32 numbers is exact, and there are bounds for these only.
    bound: 'scale-subtract',
  },
  'qk-accumulate': {
    emulated: 'scores by fp32 products and sums, one by one: their error on fp32 inputs',
    exact: 'scores q·k in fp64',
  },
  'score-round': {
    emulated:
      "scores, scaled scores, softcapped scores and those with a bias each rounded to the input's format",
    exact: 'scores stay as they are between the passes',
    bound: 'scale-subtract',
  },
  'scale-subtract': {
    emulated: 'fp32 products with the scale rounded to fp32, and fp32 differences from m',
    exact: 'the scaled scores less m in fp64',
  },
  softcap: {
    emulated: 'division, tanh and product in fp32: their error at the fp32 score nearest s',
    exact: 'cap · tanh(s / cap) in fp64',
    bound: 'scale-subtract',
  },
  bias: {
    emulated:
      'bias and ALiBi rounded together to fp32, and their fp32 sum with the score nearest s',
    exact: 's + bias in fp64',
    bound: 'scale-subtract',
  },
  exp: {
    emulated: 'p rounded to fp32: its relative error at the fp32 s − m nearest s − m',
    exact: 'p in fp64',
    bound: 'exp2-hardware',
  },
  'row-sum': {
    emulated: 'l by fp32 sums, one by one: their error on p rounded to fp32',
    exact: 'l in fp64',
  },
  normalise: {
    emulated:
      "the row's finish: fp32 quotients p / l and their fp32 products with dropout's factor, and " +
      'LSE = m + ln l with two fp32 roundings',
    exact: 'p / l, the products and m + ln l in fp64',
  },
  'p-round': {
    emulated: "w rounded once to the input's format",
    exact: 'the product with V takes w itself',
  },
  'pv-accumulate': {
    emulated: 'outputs by fp32 products and sums, one by one: their error on w rounded to fp32',
    exact: 'Σ w·v in fp64',
  },
  'output-round': { emulated: 'rounded once to the format of Q', exact: 'not rounded' },
};

/** Formats in which every fp32 number is one of their own. */
const holdFloat32: readonly FormatName[] = ['fp32', 'fp64'];

/**
 * The techniques that a textbook kernel has on a problem: those of formats and of the softcap only where
 * there is something to round or cap.
 *
 * @param intermediate the format that scores and weights are rounded to between the passes
 */
export function naiveTechniquesOf(
  problem: Problem,
  intermediate: FormatName,
): readonly NaiveTechnique[] {
  const rounds = !holdFloat32.includes(intermediate);
  const isThere: Partial<Record<NaiveTechnique, boolean>> = {
    'input-round': [problem.q, problem.k, problem.v].some(isBeyondFloat32),
    'score-round': rounds,
    softcap: problem.softcap !== null,
    bias: problem.bias !== undefined || problem.alibiSlopes !== undefined,
    'p-round': rounds,
  };
  return naiveTechniques.filter((technique) => isThere[technique] ?? true);
}
