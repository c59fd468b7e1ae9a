import { describe } from 'vitest';
import { judgedFa4 } from './judged-kernels.js';
import { boundedProblems, configurations, expectSound } from './random-problems.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

describe.each(['e4m3', 'e5m2'] as const)(`FlashAttention-4's forward on %s problems`, (format) => {
  inTurn(
    'is within its bounds, technique by technique and in all, and raises no alarm',
    () => {
      const problems = boundedProblems(format, { softcap: false });
      expectSound('soundness-fp8', 0.1, problems, configurations, judgedFa4);
    },
    7_200_000,
  );
});
