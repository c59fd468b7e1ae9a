import { describe } from 'vitest';
import { judgedFa4 } from './judged-kernels.js';
import { boundedProblems, configurations, expectSound } from './random-problems.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

describe("FlashAttention-4's forward on fp16 problems", () => {
  inTurn(
    'is within its bounds, technique by technique and in all, and raises no alarm',
    () => {
      const problems = boundedProblems('fp16', { softcap: false });
      expectSound('soundness-fp16', 0.3, problems, configurations, judgedFa4);
    },
    7_200_000,
  );
});
