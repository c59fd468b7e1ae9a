import { describe, expect } from 'vitest';
import { runKernelModel } from '../../../kernels/index.js';
import { resolvePromises, runCase } from '../../../properties/suite/index.js';
import { judgeOutputs, premiseHint } from '../../../src/audit/index.js';
import { filledProblem, sumNormalNumbers, uniformNumbers } from '../../setup/problems.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const normal = sumNormalNumbers(uniformNumbers(330_601));
const problem = filledProblem({ heads: 2, queries: 64, keys: 128, dim: 32 }, () => 2 * normal());
/** A kernel that writes scores and weights in bf16: no fused one. */
const kernel = () => runKernelModel('naive-input', problem, new Map());

describe('a check of a kernel that errs as a premise predicts', () => {
  inTurn(
    'says what an audit of its problem says, and nothing where the judge fixes the premises',
    async () => {
      const { premise } = judgeOutputs(problem, kernel()).verdict;
      expect(premise?.flags).toContain('scores=bf16');
      const tried = (strictPremises: boolean) =>
        runCase(
          'within-bound',
          { problem, choice: 0 },
          kernel,
          resolvePromises({ strictPremises, laws: {} }),
          { diagnose: true },
        );
      expect(await tried(false)).toMatchObject({ status: 'violated', hint: premiseHint(premise!) });
      expect(await tried(true)).toMatchObject({ status: 'violated', hint: null });
    },
  );
});
