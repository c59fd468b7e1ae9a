import { describe, it } from 'vitest';
import { judgedFa4 } from './judged-kernels.js';
import { boundedProblems, configurations, expectSound } from './random-problems.js';

describe.each(['e4m3', 'e5m2'] as const)(`FlashAttention-4's forward on %s problems`, (format) => {
  it('is within its bounds, technique by technique and in all, and raises no alarm', () => {
    const problems = boundedProblems(format, { softcap: false });
    expectSound('soundness-fp8', 0.1, problems, configurations, judgedFa4);
  }, 7_200_000);
});
