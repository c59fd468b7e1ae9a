import { expect, it } from 'vitest';
import { rulesOf } from '../../../oracles/attention/rules.js';
import { attentionGradients, levels } from '../../../oracles/index.js';
import { createGradientEngine } from '../../../oracles/gradients/gradient-engine.js';
import { headGroups } from '../../../oracles/gradients/operands.js';
import { rowStatistics } from '../../../oracles/gradients/row-statistics.js';
import { randomValues } from '../../../properties/problems/values.js';
import {
  problemMask,
  problemShape,
  type Problem,
  type Tensor,
} from '../../../src/problem/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { filledProblem, tensor } from '../../setup/problems.js';

const [queries, keys, dim, vDim] = [3, 7, 4, 2];

/** By row, σ + δ / Σ P|dP|: the error of its dT relative to its scale, as Theorem 1 bounds it. */
function errorsOf(problem: Problem, dout: Tensor): number[] {
  const shape = problemShape(problem);
  const [group] = [...headGroups(problem, dout, shape)];
  const mask = problemMask(problem, shape);
  const ranges = Array.from({ length: queries }, (_, i) => mask.ranges(0, i));
  const block = { operands: group.operandsOf(0), firstRow: 0, ranges };
  const engine = createGradientEngine(shape.qkDim, shape.vDim);
  const found = rowStatistics(engine, block, rulesOf(problem, shape));
  return ranges.map((_, i) => found.relative[i] + found.absolute[i] / found.meanSize[i]);
}

/** The levels that solve the rows, if dT may err by `fraction` of its scale; dQ, which may want more, is left out. */
function levelsOf(problem: Problem, dout: Tensor, fraction: number): string[] {
  const accuracy = { outputFormat: 'fp32', ulpFraction: 0, magnitudeFraction: fraction } as const;
  const { level, dq } = attentionGradients(problem, dout, { accuracy, wanted: ['dv'] });
  expect(dq).toBeNull();
  return Array.from(level, (one) => levels[one]);
}

/** A problem whose scores, and products with dO, have errors of many roundings. */
function drawn(seed: number, size: number) {
  const random = randomValues(seed);
  const frame = { queries, keys, dim, vDim, format: 'fp64' } as const;
  const problem = filledProblem(frame, random.normal, { scale: size });
  return { problem, dout: tensor('fp64', [1, 1, queries, vDim], random.normal) };
}

it('fp64 solves a row just where its error is within half of what is asked', () => {
  for (let run = 0; run < scaled(6); run++) {
    const { problem, dout } = drawn(testSeed + run, 2 ** 10);
    const errors = errorsOf(problem, dout);
    for (const [row, error] of errors.entries()) {
      expect(error).toBeGreaterThan(2 ** -40);
      for (const share of [0.99, 1.01]) {
        const found = levelsOf(problem, dout, (2 * error) / share);
        errors.forEach((other, i) =>
          expect(found[i] === 'fp64', `row ${i} at ${share} of row ${row}`).toBe(
            other * share <= error,
          ),
        );
      }
    }
  }
});

it('fp64 solves a row whose error is within 2^-40, whatever is asked', () => {
  for (let run = 0; run < scaled(6); run++) {
    const seed = testSeed + run;
    const largest = (size: number) => {
      const { problem, dout } = drawn(seed, size);
      return Math.max(...errorsOf(problem, dout));
    };
    // The scale of the scores at which the row that errs most is at the limit.
    let [low, high] = [2 ** -10, 2 ** 12];
    for (let step = 0; step < 30; step++) {
      const middle = Math.sqrt(low * high);
      if (largest(middle) < 2 ** -40) low = middle;
      else high = middle;
    }
    const solved = (size: number) => {
      const { problem, dout } = drawn(seed, size);
      return levelsOf(problem, dout, 0).every((level) => level === 'fp64');
    };
    expect(largest(low * 0.99)).toBeGreaterThan(2 ** -40 * 0.9);
    expect(solved(low * 0.99)).toBe(true);
    expect(solved(high * 1.01)).toBe(false);
  }
});
