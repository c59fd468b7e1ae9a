import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import type {
  CheckScope,
  KernelPromises,
  LawId,
  RoundResult,
  RoundRunner,
} from '../../../properties/index.js';
import { RequestError } from '../../request-error.js';
import { unshare, type Shared } from '../audit/index.js';
import type { LibraryModel } from './kernel-under-test.js';

/** Data for every thread of a check. */
export interface CheckThreadData {
  readonly model: LibraryModel;
  /** The promises that differ from the model's own, as data. */
  readonly promises: KernelPromises;
  readonly scope: CheckScope;
  readonly seed: number;
}

/** A round of a law for a thread to try. */
export interface RoundRequest {
  readonly law: LawId;
  readonly round: number;
  readonly shrinkSeconds: number;
}

/** The result of a round, or the message of a user error. */
export type RoundAnswer = Shared<RoundResult> | { readonly refusal: string };

/** The promises that differ from the model's own, which a thread recreates. */
export function changedPromises(own: KernelPromises, promises: KernelPromises): KernelPromises {
  const names = Object.keys(promises) as (keyof KernelPromises)[];
  return Object.fromEntries(
    names.filter((name) => promises[name] !== own[name]).map((name) => [name, promises[name]]),
  );
}

/** Starts threads that try rounds of laws. Must be closed. */
export function startCheckThreads(
  threads: number,
  data: CheckThreadData,
): RoundRunner & { readonly close: () => Promise<void> } {
  const pool = new Piscina({
    filename: fileURLToPath(new URL('./check-worker.js', import.meta.url)),
    name: 'answerRound',
    workerData: data,
    minThreads: threads,
    maxThreads: threads,
    concurrentTasksPerWorker: 1,
  });
  return {
    lanes: threads,
    tryRound: async (law, round, shrinkSeconds) => {
      const request: RoundRequest = { law, round, shrinkSeconds };
      const answer = (await pool.run(request)) as RoundAnswer;
      if ('refusal' in answer) throw new RequestError(answer.refusal);
      return unshare(answer);
    },
    close: () => pool.destroy(),
  };
}
