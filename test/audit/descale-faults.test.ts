import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../oracles/index.js';
import { auditAccuracy, judgeOutputs } from '../../src/audit/index.js';
import { attachScales, type Problem } from '../../src/problem/index.js';
import { lazily } from '../../src/reuse.js';
import { sampled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { filledProblem, sumNormalNumbers, uniformNumbers } from '../setup/problems.js';
import { runOnlineKernel } from './online-kernel.js';

const inTurn = turns(import.meta.url);

/** fp8 inputs of 2 query heads on each of 2, with a factor by head. */
function scaledProblem(
  changes: Readonly<Partial<Record<'q' | 'k' | 'v', readonly number[]>>>,
): Problem {
  const normal = sumNormalNumbers(uniformNumbers(170_902));
  const frame = { heads: 4, kvHeads: 2, queries: 24, keys: 160, dim: 16, format: 'e4m3' } as const;
  const plain = filledProblem(frame, () => 20 * normal());
  const factors = { q: [0.04, 0.09], k: [0.05, 0.11], v: [0.03, 0.02], ...changes };
  const given = Object.entries(factors).map(([name, values]) => [
    name,
    { descale: { format: 'fp32', shape: [1, 2], data: Float32Array.from(values) } },
  ]);
  return attachScales(plain, Object.fromEntries(given));
}

const problem = scaledProblem({});
const reference = lazily(() => attentionOracle(problem, { accuracy: auditAccuracy('bf16') }));

const faults: readonly (readonly [string, Parameters<typeof scaledProblem>[0], RegExp])[] = [
  ['q_descale left out', { q: [1, 1] }, /q_descale is not applied/],
  ['k_descale left out', { k: [1, 1] }, /k_descale is not applied/],
  ['v_descale left out', { v: [1, 1] }, /v_descale is not applied/],
  ['q_descale and k_descale left out', { q: [1, 1], k: [1, 1] }, /q_descale and k_descale are not/],
  ['v_descale twice', { v: [0.03 ** 2, 0.02 ** 2] }, /v_descale is applied twice/],
  ['k_descale twice', { k: [0.05 ** 2, 0.11 ** 2] }, /k_descale is applied twice/],
  ['k_descale of the next head', { k: [0.11, 0.05] }, /k_descale is that of the next head/],
  ['v_descale of head 0', { v: [0.03, 0.03] }, /v_descale is that of head 0 for all heads/],
  ['v_descale that divides', { v: [1 / 0.03, 1 / 0.02] }, /v_descale divides/],
];

describe('factors of fp8 inputs', () => {
  it('used as they are pass', () => {
    const outputs = runOnlineKernel(problem, { offset: 8 });
    const { verdict } = judgeOutputs(problem, outputs, { reference: reference() });
    expect(verdict.findings).toEqual([]);
  });

  inTurn.each(sampled(faults, 3))('%s: is seen, and named', (_, changes, sentence) => {
    const outputs = runOnlineKernel(scaledProblem(changes), { offset: 8 });
    const { verdict } = judgeOutputs(problem, outputs, { reference: reference() });
    expect(verdict.pass).toBe(false);
    expect(verdict.sentence).toMatch(sentence);
  });
});
