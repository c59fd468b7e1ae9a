import { afterAll, describe, expect, it } from 'vitest';
import type { Accuracy } from '../../../oracles/index.js';
import { randomValues } from '../../../properties/problems/values.js';
import type { FormatName } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { filledProblem, tensor } from '../../setup/problems.js';
import {
  featuredProblem,
  oracleFeatures,
  type FeaturedSizes,
  type OracleFeature,
} from '../attention/features/featured-problems.js';
import { loadMpfr } from '../mpfr.js';
import { assertGradients, GradientUse } from './gradient-check.js';

const mpfr = await loadMpfr();

/** The oracle's own accuracy, an audit's, and one that leaves every element to the exact level. */
const accuracies: Readonly<Record<string, Accuracy | undefined>> = {
  default: undefined,
  audit: { outputFormat: 'bf16', ulpFraction: 0, magnitudeFraction: 2 ** -40 },
  exact: { outputFormat: 'fp64', ulpFraction: 1, magnitudeFraction: 0 },
};

const uses = Object.fromEntries(Object.keys(accuracies).map((name) => [name, new GradientUse()]));

const small = { queries: 3, keys: 8, heads: 2, kvHeads: 1, dim: 5, vDim: 3 };

/** The gradient of O of a problem, drawn. */
function drawDout(problem: Problem, value: (at: number) => number, format?: FormatName) {
  const shape = [...problem.q.shape.slice(0, -1), problem.v.shape.at(-1)!];
  return tensor(format ?? problem.q.format, shape, value);
}

function crossCheck(problem: Problem, dout: ReturnType<typeof drawDout>, what: string): void {
  for (const [name, accuracy] of Object.entries(accuracies))
    try {
      assertGradients(mpfr, problem, dout, accuracy === undefined ? {} : { accuracy }, uses[name]);
    } catch (error) {
      throw new Error(`${name} accuracy, ${what}: ${String(error)}`);
    }
}

function checkFeatures(
  seed: number,
  features: readonly OracleFeature[],
  sizes: FeaturedSizes,
): void {
  const random = randomValues(seed);
  const problem = featuredProblem(random, features, sizes);
  const size = [2 ** -30, 1, 1, 1e4][random.integer(0, 3)];
  const dout = drawDout(problem, () => size * random.normal());
  crossCheck(problem, dout, `${features.join(', ')}, seed ${seed}`);
}

describe('the oracle of gradients', () => {
  it.each(oracleFeatures)('is within its radii with %s alone', (feature) => {
    for (let i = 0; i < scaled(3); i++) checkFeatures(testSeed + i, [feature], small);
  });

  it('is within its radii with features together', () => {
    for (let i = 0; i < scaled(12); i++) {
      const random = randomValues(testSeed + 7919 * i);
      const features = oracleFeatures.filter(() => random.integer(0, 1) === 1);
      checkFeatures(testSeed + i, features, small);
    }
  });

  it('is within its radii across tiles', () => {
    const random = randomValues(testSeed);
    for (const [queries, keys] of [
      [3, 130],
      [70, 5],
    ]) {
      const problem = filledProblem({ queries, keys, dim: 3, vDim: 2 }, random.normal);
      crossCheck(problem, drawDout(problem, random.normal), `${queries} × ${keys}`);
    }
  });

  afterAll(() => {
    for (const [name, use] of Object.entries(uses))
      console.info(name, JSON.stringify(use.levels), JSON.stringify(use.summary()));
  });
  void expect;
});
