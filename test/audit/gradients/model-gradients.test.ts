import { describe, expect, it } from 'vitest';
import { kernelModels, runBackward } from '../../../kernels/index.js';
import { auditGradients, kernelGradientPremises } from '../../../src/audit/index.js';
import { seededRandom, normalProblem } from '../../kernels/features/index.js';
import { drawDout } from '../../kernels/gradients/index.js';
import { testSeed } from '../../setup/effort.js';

const models = kernelModels.filter(({ backward }) => backward !== null);

describe.each(models)("$name's own gradients", (model) => {
  it.each([
    ['plain', {}],
    ['causal', { causal: true }],
  ] as const)('pass by its own premises: %s', (_, changes) => {
    const random = seededRandom(testSeed);
    const problem = { ...normalProblem(random, { queries: 70, format: 'bf16' }), ...changes };
    const dout = drawDout(random, problem);
    const { forward, prepared, dq, dk, dv } = runBackward(model, problem, { dout });
    const arithmetic = model.backward!.arithmetic(problem, new Map());
    const premises = kernelGradientPremises(problem, prepared.format, arithmetic);
    const { verdict } = auditGradients(problem, { dout, ...forward, dq, dk, dv }, { premises });
    expect(verdict.findings).toEqual([]);
    expect(verdict.pass).toBe(true);
  });
});

it('gradients that round between their passes fail by the premises of those that do not', () => {
  const random = seededRandom(testSeed);
  const problem = normalProblem(random, { queries: 70, format: 'bf16' });
  const dout = drawDout(random, problem);
  const { dq, dk, dv } = runBackward('naive-input', problem, { dout });
  const exact = kernelModels.find(({ name }) => name === 'naive-fp32')!;
  const premises = kernelGradientPremises(
    problem,
    'bf16',
    exact.backward!.arithmetic(problem, new Map()),
  );
  const { verdict } = auditGradients(problem, { dout, dq, dk, dv }, { premises, diagnose: false });
  expect(verdict.pass).toBe(false);
});
