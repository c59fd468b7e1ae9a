import { workerData } from 'piscina';
import { planCheck, tryRound } from '../../../properties/index.js';
import { lazily } from '../../reuse.js';
import { RequestError } from '../../request-error.js';
import { sendable } from '../audit/index.js';
import type { CheckThreadData, RoundAnswer, RoundRequest } from './check-threads.js';
import { emulatedKernel } from './emulated-kernel.js';

const check = lazily(() => {
  const { model, promises, scope, seed } = workerData as CheckThreadData;
  const { kernel, promises: own } = emulatedKernel(model.name, model.settings);
  return { kernel, plan: planCheck({ ...own, ...promises }, scope), seed };
});

/** The work of a worker thread of check-threads.ts: one round of a law. */
export async function answerRound({
  law,
  round,
  shrinkSeconds,
}: RoundRequest): Promise<RoundAnswer> {
  try {
    const { kernel, plan, seed } = check();
    const planned = plan.laws.find(({ id }) => id === law)!;
    const ofLaw = { planned, promises: plan.promises, seed };
    return sendable(await tryRound(ofLaw, round, kernel, shrinkSeconds));
  } catch (error) {
    if (error instanceof RequestError) return { refusal: error.message };
    throw error;
  }
}
