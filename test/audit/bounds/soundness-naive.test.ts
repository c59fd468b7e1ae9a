import * as fc from 'fast-check';
import { describe } from 'vitest';
import { judgedNaive } from './judged-kernels.js';
import { boundedProblems, expectSound } from './random-problems.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const models = fc.constantFrom('naive-fp32' as const, 'naive-input' as const);

describe.each(['bf16', 'fp16'] as const)(`textbook attention on %s problems`, (format) => {
  inTurn(
    'is within its bounds, technique by technique and in all, and raises no alarm',
    () => {
      const problems = boundedProblems(format, { queries: { max: 70 }, qkDim: { max: 32 } });
      expectSound('soundness-naive', 0.1, problems, models, judgedNaive);
    },
    7_200_000,
  );
});
