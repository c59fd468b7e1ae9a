import { expect } from 'vitest';
import {
  auditRecurrent,
  auditRecurrentApart,
  measureRecurrentPart,
} from '../../src/audit/index.js';
import { share, unshare } from '../../src/jobs/audit/shared-values.js';
import { readCapturedRecurrence } from '../fixtures/recurrent-captures.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

inTurn(
  'gives the same judgement of a recurrence whose heads are measured apart, in any order',
  async () => {
    const { problem, kernels } = await readCapturedRecurrence('gated-delta-packed.safetensors');
    const { out, final_state } = kernels.chunk!;
    const given = { results: { out: out!, final_state: final_state! } };
    const options = { declared: { form: 'chunked', chunk: 64 } } as const;
    let started = 0;
    const apart = await auditRecurrentApart(problem, given, options, {
      start: (plan) => {
        started++;
        const shared = share(plan);
        return {
          run: async (requests, settle) => {
            const answers = [...requests]
              .reverse()
              .map(({ part, index }) => measureRecurrentPart(unshare(shared), part, index))
              .reverse();
            answers.forEach(settle);
          },
          close: async () => undefined,
        };
      },
    });
    expect(apart).toEqual(auditRecurrent(problem, given, options));
    expect(started).toBe(1);
  },
);
