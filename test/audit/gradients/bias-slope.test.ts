import { describe, expect, it } from 'vitest';
import { attentionGradients } from '../../../oracles/index.js';
import { anyGradientPremises, auditGradients, measureGradients } from '../../../src/audit/index.js';
import { compareGradient } from '../../../src/audit/gradients/judge-gradient.js';
import { sharedQuantities } from '../../../src/audit/gradients/gradient-quantities.js';
import { gradientUnits } from '../../../src/audit/gradients/row-units.js';
import { ErrorSum } from '../../../src/audit/gradients/structure/error-sum.js';
import { gradientStatistics } from '../../../src/audit/gradients/structure/gradient-structure.js';
import { noMeanErrors } from '../../../src/audit/gradients/structure/mean-errors.js';
import {
  noRoundings,
  outputRoundings,
} from '../../../src/audit/gradients/structure/output-roundings.js';
import {
  decodeTensor,
  encodeFromFloat64,
  formats,
  type Tensor,
} from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { fromEnvironment, testSeed } from '../../setup/effort.js';
import { normalProblem, normalTensor, seededRandom } from '../../kernels/features/index.js';
import { backwardKernel, correctBackwards, drawDout } from '../../kernels/gradients/index.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const [dbias] = sharedQuantities;

const shapeOfOne = {
  batch: 1,
  heads: 1,
  kvHeads: 1,
  groupSize: 1,
  queries: 1,
  keys: 1,
  qkDim: 1,
  vDim: 1,
} as const;

/** How many problems of each shape and order are audited. */
const audits = fromEnvironment('BIAS_AUDITS', 1);

/** Shapes of a bias. */
const shapes = {
  'every pair': [2, 2, 64, 70],
  'all heads': [64, 70],
  'a head': [2, 64, 70],
  keys: [2, 1, 1, 70],
} as const;

function biased(seed: number, shape: readonly number[]) {
  const random = seededRandom(seed);
  const sizes = { batch: 2, heads: 2, kvHeads: 2, queries: 64, keys: 70 };
  const problem: Problem = {
    ...normalProblem(random, sizes),
    bias: normalTensor(random, 'bf16', shape, 1),
  };
  return { problem, dout: drawDout(random, problem) };
}

/** The exact gradient times a factor, rounded to bf16: a factor beside rounded values would be lost in their rounding. */
function scaled(problem: Problem, dout: Tensor, shape: readonly number[], factor: number): Tensor {
  const values = attentionGradients(problem, dout).dbias!.values.map((x) => factor * x);
  return { format: 'bf16', shape, data: encodeFromFloat64(formats.bf16, values) };
}

/** The largest limit of a head's slope, and the deviation of the estimator that weighs each element by its own errors. */
function slopeLimits(problem: Problem, dout: Tensor, deviations: number) {
  const given = backwardKernel(correctBackwards['ascending'])(problem, dout);
  const measured = measureGradients(problem, dout, {
    premises: { ...anyGradientPremises(problem, 'bf16'), delta: 'stored-output' },
    given: { out: given.out, lse: given.lse },
    shared: { dbias: 'bf16', dsink: null },
  });
  const { bound, shape } = measured.gradients.dbias!;
  const values = decodeTensor(given.dbias!);
  const compared = compareGradient({ quantity: dbias, format: 'bf16', values }, measured);
  const heads = shape.batch * shape.heads;
  const precision = new Float64Array(heads);
  compared.exact.values.forEach((x, i) => {
    const head = Math.floor((i * heads) / values.length);
    if (bound.deviation[i] > 0) precision[head] += (x / bound.deviation[i]) ** 2;
  });
  const statistics = gradientStatistics(
    {
      compared,
      errors: { ...bound, roundings: outputRoundings(compared, bound) },
      units: gradientUnits(compared.exact.values, shape.keys),
      means: noMeanErrors(heads, shape.keys),
    },
    deviations,
  );
  return [...statistics]
    .filter(({ test, scope }) => test === 'scale' && scope === 'head')
    .map(({ threshold, head }) => threshold * Math.sqrt(precision[head]));
}

describe('the slope of dBias', () => {
  inTurn.each(Object.entries(shapes))(
    'tells a kernel whose dBias is of %s and a little large from a right one',
    (name, shape) => {
      // Sums over queries leave the fewest elements.
      const large = name === 'keys' ? 1.005 : 1.0015;
      for (let i = 0; i < audits; i++)
        for (const order of Object.keys(correctBackwards)) {
          const { problem, dout } = biased(testSeed + i, shape);
          const { out, lse, dbias: given } = backwardKernel(correctBackwards[order])(problem, dout);
          const passes = (dbias: Tensor) =>
            auditGradients(problem, { dout, out, lse, dbias }, { diagnose: false }).verdict.pass;
          expect(passes(given!), order).toBe(true);
          expect(passes(scaled(problem, dout, shape, large)), order).toBe(false);
        }
    },
  );

  it.each(Object.entries(shapes))(
    'has a limit within ten deviations of an optimally weighted estimator where it is of %s',
    (_, shape) => {
      const { problem, dout } = biased(testSeed, shape);
      const limits = slopeLimits(problem, dout, 6.5);
      expect(limits).toHaveLength(
        shape.length === 2 ? 1 : shape.length === 3 ? 2 : shape[0] * shape[1],
      );
      for (const limit of limits) {
        expect(limit).toBeLessThan(10);
        expect(limit).toBeGreaterThan(6.5);
      }
    },
  );

  it('is tested beside elements that are 0 or err by next to nothing', () => {
    const [rows, columns] = [2, 3];
    const exact = Float64Array.of(1, -2, 0, 3, 2 ** -700, 0.5);
    const values = exact.map((x) => 1.1 * x);
    const deviation = Float64Array.of(1e-3, 2e-3, 1e-200, 1e-3, 1e-250, 1e-3);
    const none = new Float64Array(rows * columns);
    const compared = {
      quantity: dbias,
      format: 'fp64',
      values,
      exact: { values: exact, magnitude: exact.map(Math.abs) },
      shape: { ...shapeOfOne, queries: rows, keys: columns },
      isSpecialRow: () => false,
      mayBeNaN: () => false,
    } as const;
    const roundings = noRoundings(deviation);
    const errors = { systematic: none, deviation, operands: none, apart: deviation, roundings };
    const units = gradientUnits(exact, columns);
    const means = noMeanErrors(1, columns);
    const found = [...gradientStatistics({ compared, errors, units, means }, 6)].filter(
      ({ test }) => test === 'scale',
    );
    expect(found.map(({ scope }) => scope)).toEqual(['tile', 'head']);
    for (const { statistic, threshold } of found) {
      expect(statistic).toBeCloseTo(0.1, 12);
      expect(threshold).toBeLessThan(0.01);
    }
  });

  it('adds what elements of a row share as one error, the rest by squares, and equal rows as one', () => {
    const random = seededRandom(testSeed);
    const draw = () => Float64Array.from({ length: 12 }, () => random());
    const [deviation, pattern, share] = [draw(), draw(), draw()];
    const apart = deviation.map((x, i) => x * share[i]);
    const none = new Float64Array(12);
    const errors = { systematic: none, deviation, operands: none };
    const sumOf = (units: readonly (number | null)[], of: Float64Array | null) => {
      const sum = new ErrorSum({ ...errors, apart: of, roundings: noRoundings(deviation) });
      units.forEach((unit, row) => {
        for (let i = 4 * row; i < 4 * row + 4; i++) sum.add(i, 0, pattern[i]);
        sum.endRow(unit);
      });
      return sum.ofIndependent(1, 0);
    };
    const linear = (row: number, of: (i: number) => number) =>
      [0, 1, 2, 3].reduce((sum, k) => sum + of(4 * row + k) * pattern[4 * row + k], 0);
    const whole = [0, 1, 2].map((row) => linear(row, (i) => deviation[i]));
    const common = [0, 1, 2].map((row) =>
      linear(row, (i) => Math.sqrt(deviation[i] ** 2 - apart[i] ** 2)),
    );
    const squares = apart.reduce((sum, x, i) => sum + (x * pattern[i]) ** 2, 0);
    const ofFirst = [0, 1, 2, 3].reduce((sum, i) => sum + (apart[i] * pattern[i]) ** 2, 0);
    expect(sumOf([null, null, null], null)).toBeCloseTo(Math.hypot(...whole), 12);
    expect(sumOf([null, null, null], apart)).toBeCloseTo(
      Math.sqrt(common.reduce((sum, x) => sum + x * x, 0) + squares),
      12,
    );
    // Two rows that err alike: nothing of them is apart.
    expect(sumOf([null, 7, 7], apart)).toBeCloseTo(
      Math.sqrt(common[0] ** 2 + ofFirst + (whole[1] + whole[2]) ** 2),
      12,
    );
  });
});
