import { describe } from 'vitest';
import { judgedFa4 } from './judged-kernels.js';
import { boundedProblems, configurations, expectSound } from './random-problems.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

describe("FlashAttention-4's forward on bf16 problems", () => {
  inTurn(
    'is within its bounds, technique by technique and in all, and raises no alarm',
    () => {
      const problems = boundedProblems('bf16', { softcap: false });
      expectSound('soundness-bf16', 0.3, problems, configurations, judgedFa4);
    },
    7_200_000,
  );
});
