import { afterAll, describe, expect, it } from 'vitest';
import type { Accuracy } from '../../../oracles/index.js';
import { randomValues, type RandomValues } from '../../../properties/problems/values.js';
import { tensorScales, type FormatName } from '../../../src/formats/index.js';
import type { Problem, Tensor } from '../../../src/problem/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { filledProblem, tensor, type Fill } from '../../setup/problems.js';
import {
  featuredProblem,
  oracleFeatures,
  type FeaturedSizes,
  type OracleFeature,
} from '../attention/features/featured-problems.js';
import { loadMpfr } from '../mpfr.js';
import { assertGradients, GradientUse } from './gradient-check.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const mpfr = await loadMpfr();

/** The oracle's own accuracy, an audit's, one that is content with fp64, and one that fp64 is never enough for. */
const accuracies: Readonly<Record<string, Accuracy | undefined>> = {
  default: undefined,
  audit: { outputFormat: 'bf16', ulpFraction: 0, magnitudeFraction: 2 ** -40 },
  loose: { outputFormat: 'bf16', ulpFraction: 0, magnitudeFraction: 1 },
  exact: { outputFormat: 'fp64', ulpFraction: 1, magnitudeFraction: 0 },
};

const uses = Object.fromEntries(Object.keys(accuracies).map((name) => [name, new GradientUse()]));

const small = { queries: 3, keys: 8, heads: 2, kvHeads: 1, dim: 5, vDim: 3 };

/** The gradient of O of a problem, drawn. */
function drawDout(problem: Problem, value: (at: number) => number, format?: FormatName) {
  const shape = [...problem.q.shape.slice(0, -1), problem.v.shape.at(-1)!];
  return tensor(format ?? problem.q.format, shape, value);
}

/** A problem in fp64 of which the products with K or V are small differences of large numbers, for a dO of ones. */
function cancelling(random: RandomValues, name: 'k' | 'v', size = 1): Problem {
  const frame = { queries: 4, keys: 9, dim: 4, format: 'fp64' } as const;
  const drawn = Array.from({ length: 9 }, () => [
    (2 ** 17 * (1 + random.uniform())) / 3,
    size * random.normal(),
  ]);
  const fills = { q: random.normal, k: random.normal, v: random.normal };
  const cancels = (at: number) => {
    const [large, small] = drawn[at >> 2];
    return [large, small, -large, small / 3][at % 4];
  };
  return filledProblem(
    frame,
    { ...fills, q: (at) => 0.1 + (at >> 2), [name]: cancels },
    { scale: 0.3 },
  );
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
  inTurn.each(oracleFeatures)('is within its radii with %s alone', (feature) => {
    for (let i = 0; i < scaled(2); i++) checkFeatures(testSeed + i, [feature], small);
  });

  it('is within its radii with features together', () => {
    for (let i = 0; i < scaled(8); i++) {
      const random = randomValues(testSeed + 7919 * i);
      const features = oracleFeatures.filter(() => random.integer(0, 1) === 1);
      checkFeatures(testSeed + i, features, small);
    }
  });

  inTurn('is within its radii across tiles', () => {
    const random = randomValues(testSeed);
    for (const [queries, keys] of [
      [3, 130],
      [70, 5],
    ]) {
      const problem = filledProblem({ queries, keys, dim: 3, vDim: 2 }, random.normal);
      crossCheck(problem, drawDout(problem, random.normal), `${queries} × ${keys}`);
    }
  });

  it.each<FormatName>(['e4m3', 'e5m2', 'bf16', 'fp16', 'fp32', 'fp64'])('takes %s', (format) => {
    const random = randomValues(testSeed);
    const problem = filledProblem({ ...small, format }, random.normal);
    crossCheck(problem, drawDout(problem, random.normal, 'fp32'), format);
  });

  it('takes scores that lie deep, and derivatives that cancel', () => {
    const random = randomValues(testSeed);
    const frame = { queries: 4, keys: 9, dim: 3, vDim: 2 };
    const { normal } = random;
    const fp32 = { ...frame, format: 'fp32' } as const;
    const fp64 = { ...frame, format: 'fp64' } as const;
    const small = { ...cancelling(random, 'k', 2 ** -12), softcap: 2 ** -12 };
    // What is to cancel with dO needs one that is alike in all columns.
    const alike: Fill = (at) => 0.1 + (at >> 2);
    const cases: Readonly<Record<string, readonly [Problem, Fill]>> = {
      'a bias of −1e4': [
        filledProblem(frame, normal, {
          bias: tensor('fp32', [9], (key) => (key % 3 === 0 ? 0 : -1e4)),
        }),
        normal,
      ],
      'all scores at −1e4': [
        filledProblem(frame, normal, { bias: tensor('fp32', [9], () => -1e4) }),
        normal,
      ],
      'scores of ten thousands in fp32': [filledProblem(fp32, normal, { scale: 1e4 }), normal],
      'a large dO': [filledProblem(fp32, normal), () => 2 ** 100 * normal()],
      'values all alike': [
        filledProblem(fp32, { q: normal, k: normal, v: (at) => [1.7, -0.3][at % 2] }),
        normal,
      ],
      'values alike but for a little': [
        filledProblem(fp64, { q: normal, k: normal, v: () => 1 + 2 ** -30 * normal() }),
        normal,
      ],
      'products that cancel': [cancelling(random, 'v'), alike],
      'scores that cancel': [cancelling(random, 'k'), normal],
      'scores that cancel under a softcap': [small, normal],
      'a single key': [filledProblem({ ...fp32, keys: 1 }, normal), normal],
      'a flat softcap': [filledProblem(frame, normal, { scale: 100, softcap: 0.5 }), normal],
    };
    for (const [name, [problem, dout]] of Object.entries(cases))
      crossCheck(problem, drawDout(problem, dout, 'fp64'), name);
  });

  it('takes factors of q, k and v', () => {
    const random = randomValues(testSeed);
    const plain = filledProblem({ ...small, format: 'e4m3' }, random.normal);
    const [q, k, v] = [plain.q, plain.k, plain.v].map((of, index): Tensor => {
      const factor = [0.3, 1.1, 7][index];
      const shape = of.shape.map(() => 1);
      const values = Float64Array.of(Math.fround(factor));
      const blocks = of.shape;
      const scales = tensorScales(of, [{ name: 'descale', format: 'fp32', values, shape, blocks }]);
      return { ...of, scales };
    });
    const problem = { ...plain, q, k, v };
    crossCheck(problem, drawDout(problem, random.normal, 'bf16'), 'factors');
  });

  it('has radii of some thousand roundings of fp64, of what terms add up to', () => {
    const random = randomValues(testSeed);
    for (const format of ['bf16', 'fp32'] as const) {
      const problem = filledProblem({ queries: 20, keys: 40, dim: 8, format }, random.normal);
      const use = new GradientUse();
      assertGradients(mpfr, problem, drawDout(problem, random.normal), {}, use);
      expect(use.levels).toEqual({ fp64: 20 });
      for (const { width, largest } of Object.values(use.summary())) {
        expect(width).toBeLessThan(1e4);
        expect(largest).toBeGreaterThan(2 ** -14);
      }
    }
  });

  afterAll(() => {
    for (const [name, use] of Object.entries(uses))
      console.info(name, JSON.stringify(use.levels), JSON.stringify(use.summary()));
  });
});
