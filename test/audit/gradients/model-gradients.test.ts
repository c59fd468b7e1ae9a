import { describe, expect } from 'vitest';
import { kernelModels, runBackward } from '../../../kernels/index.js';
import { auditGradients, kernelGradientPremises } from '../../../src/audit/index.js';
import { RequestError } from '../../../src/request-error.js';
import { featureProblems, normalProblem, seededRandom } from '../../kernels/features/index.js';
import { drawDout } from '../../kernels/gradients/index.js';
import { sampled, testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** What a model gives; null where it declines. */
function attempt<T>(run: () => T): T | null {
  try {
    return run();
  } catch (error) {
    if (error instanceof RequestError) return null;
    throw error;
  }
}

const models = kernelModels.filter(({ backward }) => backward !== null);

/** Features whose problems models take by whole rows; of 8-bit inputs naive-input would round dS to 8 bits. */
const names = Object.keys(featureProblems).filter(
  (name) => name !== 'factors' && featureProblems[name](seededRandom(testSeed)).rows === undefined,
);

describe.each(models)("$name's own gradients", (model) => {
  inTurn.each(sampled(names, 2))(
    'of %s pass by its own premises, or it takes no such problem',
    (name) => {
      const random = seededRandom(testSeed);
      const problem = featureProblems[name](random);
      const dout = drawDout(random, problem);
      const given = attempt(() => runBackward(model, problem, { dout }));
      if (given === null) return;
      const { forward, prepared, dq, dk, dv } = given;
      const arithmetic = model.backward!.arithmetic(problem, new Map());
      const premises = kernelGradientPremises(problem, prepared.format, arithmetic);
      const { verdict } = auditGradients(problem, { dout, ...forward, dq, dk, dv }, { premises });
      expect(verdict.findings).toEqual([]);
      expect(verdict.pass).toBe(true);
    },
  );
});

inTurn(
  'gradients that round between their passes fail by the premises of those that do not',
  () => {
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
    const { verdict } = auditGradients(
      problem,
      { dout, dq, dk, dv },
      { premises, diagnose: false },
    );
    expect(verdict.pass).toBe(false);
  },
);
