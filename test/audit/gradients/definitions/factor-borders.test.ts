import { describe, expect, it } from 'vitest';
import { factorFaults } from '../../../../src/audit/gradients/diagnosis/stored/factor-faults.js';
import { filledProblem } from '../../../setup/problems.js';
import { bareFailure, drawGradient, type Named } from './bare-failure.js';
import { drawFrom } from './random-pairs.js';

type Factors = Partial<Record<Named, number>>;

/** A way from a named factor, in parts of it. */
const [at, within] = [1 / 64, 1 / 128];

describe('the factor of a gradient', () => {
  it.each<[string, number, Factors, readonly string[]]>([
    ['a scale of 1 to 1/32 is none', 1 + 1 / 32, { dq: 1 + 1 / 32 }, ['factor']],
    ['a scale beyond is one', 1 + 3 / 64, { dq: 1 + 3 / 64 }, ['scale-twice', 'factor']],
    ['such a scale is not moved', 1 + 1 / 32, { dq: 32 / 33, dv: 33 / 32 }, ['factor']],
    ['nor is one below 1', 1 - 1 / 32, { dq: 32 / 31, dv: 31 / 32 }, ['factor']],
    ['one beyond is', 1 + 3 / 64, { dq: 64 / 67, dv: 67 / 64 }, ['scale-moved', 'factor']],
    ['so is one below', 1 - 3 / 64, { dq: 64 / 61, dv: 61 / 64 }, ['scale-moved', 'factor']],
    ['a moved scale is near', 0.5, { dq: 2, dv: 0.5 + within / 2 }, ['scale-moved', 'factor']],
    ['no further than 1/64', 0.5, { dq: 2, dv: 0.5 + at / 2 }, ['factor']],
    ['a named factor is near', 0.4, { dv: 2 + 2 * within }, ['accumulator-not-zeroed', 'factor']],
    ['and below', 0.4, { dv: 2 - 2 * within }, ['accumulator-not-zeroed', 'factor']],
    ['no further than 1/64 of it', 0.4, { dv: 2 + 2 * at }, ['factor']],
    ['nor below', 0.4, { dv: 2 - 2 * at }, ['factor']],
  ])('has a name up to a border: %s', (_, scale, factors, wanted) => {
    const frame = { heads: 2, queries: 4, keys: 5, dim: 4 };
    const problem = filledProblem(frame, () => 1, { scale });
    const failing = Object.keys(factors) as Named[];
    const gradients = failing.map((name) => {
      const one = drawGradient(problem, name, drawFrom(4));
      // Sums of squares of these, and most quotients, are exact.
      const exact = one.exact.map((x) => 2 * Math.sign(x));
      return [name, { ...one, exact, values: exact.map((x) => (factors[name] ?? 1) * x) }] as const;
    });
    const failed = bareFailure(problem, Object.fromEntries(gradients), failing);
    expect([...factorFaults(failed, null)].map(({ id }) => id)).toEqual(wanted);
  });
});
