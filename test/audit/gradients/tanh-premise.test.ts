import { expect, it } from 'vitest';
import { anyGradientPremises } from '../../../src/audit/index.js';
import { tanhApprox } from '../../../src/hardware/mufu/index.js';
import { filledProblem } from '../../setup/problems.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const problem = filledProblem({ queries: 1, keys: 1, dim: 1, format: 'bf16' }, () => 1);
const { tanh, tanhFloor } = anyGradientPremises(problem, 'bf16');
const number = new Float32Array(1);
const bits = new Uint32Array(number.buffer);

/** Numbers of fp32 from 2^-15 to 32, so many to a binade. */
function* argumentsOf(perBinade: number): Generator<number> {
  for (let exponent = -15; exponent < 5; exponent++)
    for (let i = 0; i < perBinade; i++)
      yield Math.fround(2 ** exponent * (1 + (i + 0.37) / perBinade));
}

it("is of the hardware's tanh what no argument exceeds, and little more", () => {
  let largest = 0;
  for (const x of argumentsOf(2 ** 14)) {
    number[0] = x;
    bits[0] = tanhApprox(bits[0]);
    largest = Math.max(largest, Math.abs(number[0] / Math.tanh(x) - 1));
  }
  expect(largest).toBeLessThan(tanh);
  expect(largest).toBeGreaterThan(0.85 * tanh);
});

inTurn('admits a tanh that is made of an exponential', () => {
  const f = Math.fround;
  for (const x of argumentsOf(2 ** 10))
    // The worst of what the exponential and the quotient may be off by.
    for (const ofPower of [-1, 1])
      for (const ofQuotient of [-1, 1]) {
        const power = f(2 ** f(-2 * x * f(Math.LOG2E)) * (1 + ofPower * 2 ** -22));
        const quotient = f((1 / f(1 + power)) * (1 + ofQuotient * 2 ** -22));
        const error = Math.abs(f(f(2 * quotient) - 1) - Math.tanh(x));
        expect(error).toBeLessThan(tanh * Math.tanh(x) + tanhFloor);
      }
});
