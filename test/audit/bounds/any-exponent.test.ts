import { describe, expect, it } from 'vitest';
import { anyKernelArithmetic } from '../../../src/audit/bounds/index.js';
import { problemPremises } from '../../../src/audit/premises/resolve-premises.js';
import { filledProblem, tensor } from '../../setup/problems.js';

describe('the exponents of any kernel', () => {
  const problem = filledProblem({ queries: 2, keys: 3, dim: 2 }, () => 0);
  const usual = problemPremises(problem, 'bf16');
  const premises = {
    ...usual,
    scoreFloor: 0.5,
    scoreRounding: 2 ** -9,
    elementwise: 2 ** -20,
    tanh: 2 ** -5,
  };

  it('err by what their scores do: a floor in units of log2, and roundings by operation', () => {
    const { exponent } = anyKernelArithmetic(problem, 'bf16', premises);
    // A score s is the exponent s·log2 e.
    expect(2 ** (exponent.absolute ?? NaN)).toBeCloseTo(Math.exp(0.5), 12);
    expect(exponent.ofDistance).toBe(2 ** -9);
    expect(exponent.ofScore).toBe(2 ** -18 + 2 ** -8);
    expect(exponent.ofAddend).toBe(2 ** -18 + 2 ** -8);
    expect(exponent.ofSoftcap).toBe(0);
    const bias = tensor('bf16', [1, 1, 2, 3], () => 1);
    const added = anyKernelArithmetic({ ...problem, bias }, 'bf16', premises);
    expect(added.exponent.ofScore).toBe(2 ** -18 + 3 * 2 ** -9);
    const alibiSlopes = tensor('fp32', [1], () => 1);
    const sloped = anyKernelArithmetic({ ...problem, alibiSlopes }, 'bf16', premises);
    expect(sloped.exponent.ofScore).toBe(2 ** -18 + 3 * 2 ** -9);
    const capped = anyKernelArithmetic({ ...problem, softcap: 7 }, 'bf16', premises);
    expect(capped.exponent.ofSoftcap).toBe(2 ** -5 + 2 ** -18 + 2 ** -9);
  });
});
