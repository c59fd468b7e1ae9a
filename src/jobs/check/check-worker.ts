import { workerData } from 'piscina';
import {
  planCheck,
  planRecurrentCheck,
  recurrentRoundsOf,
  roundsOf,
  type RecurrentFailure,
  type RoundFailure,
  type RoundResult,
} from '../../../properties/index.js';
import { lazily } from '../../reuse.js';
import { RequestError } from '../../request-error.js';
import { sendable } from '../audit/index.js';
import type { CheckThreadData, RoundAnswer, RoundRequest } from './check-threads.js';
import { emulatedKernel } from './emulated-kernel.js';
import { emulatedRecurrence } from './recurrent/emulated-recurrence.js';

/** A violation of a law of any contract. */
type AnyFailure = RoundFailure | RecurrentFailure;

type TryRound = (
  law: string,
  round: number,
  shrinkSeconds: number,
) => Promise<RoundResult<AnyFailure>>;

/** Tries rounds of the check that the thread was started for. */
function runnerOf(data: CheckThreadData): TryRound {
  const { name, settings } = data.model;
  const { seed } = data;
  if (data.contract === 'recurrent') {
    const { kernel, promises: own } = emulatedRecurrence(name, settings);
    const plan = planRecurrentCheck({ ...own, ...data.promises }, data.scope);
    return recurrentRoundsOf(kernel, plan, seed);
  }
  const { kernel, promises: own } = emulatedKernel(name, settings);
  return roundsOf(kernel, planCheck({ ...own, ...data.promises }, data.scope), seed);
}

const runner = lazily(() => runnerOf(workerData as CheckThreadData));

/** The work of a worker thread of check-threads.ts: one round of a law. */
export async function answerRound({
  law,
  round,
  shrinkSeconds,
}: RoundRequest): Promise<RoundAnswer<AnyFailure>> {
  try {
    return sendable(await runner()(law, round, shrinkSeconds));
  } catch (error) {
    if (error instanceof RequestError) return { refusal: error.message };
    throw error;
  }
}
