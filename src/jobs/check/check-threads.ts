import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import type {
  CheckScope,
  KernelPromises,
  RecurrentCheckScope,
  RecurrentPromises,
  RoundResult,
  RoundRunner,
} from '../../../properties/index.js';
import { RequestError } from '../../request-error.js';
import { unshare, type Shared } from '../audit/index.js';
import type { LibraryModel } from './kernel-under-test.js';

/** What a contract's laws are tried on, as data: the promises that differ from the model's own, and the scope. */
type ContractData =
  | {
      readonly contract: 'attention';
      readonly promises: KernelPromises;
      readonly scope: CheckScope;
    }
  | {
      readonly contract: 'recurrent';
      readonly promises: RecurrentPromises;
      readonly scope: RecurrentCheckScope;
    };

/** Data for every thread of a check. */
export type CheckThreadData = ContractData & {
  readonly model: LibraryModel;
  readonly seed: number;
};

/** A round of a law for a thread to try. */
export interface RoundRequest {
  readonly law: string;
  readonly round: number;
  readonly shrinkSeconds: number;
}

/** The result of a round, or the message of a user error. */
export type RoundAnswer<Failure> = Shared<RoundResult<Failure>> | { readonly refusal: string };

/** The promises that differ from the model's own, which a thread recreates. */
export function changedPromises<Promises extends object>(
  own: Promises,
  promises: Promises,
): Partial<Promises> {
  const names = Object.keys(promises) as (keyof Promises)[];
  return Object.fromEntries(
    names.filter((name) => promises[name] !== own[name]).map((name) => [name, promises[name]]),
  ) as Partial<Promises>;
}

/** Starts threads that try rounds of laws. Must be closed. */
export function startCheckThreads<Id extends string, Failure>(
  threads: number,
  data: CheckThreadData,
): RoundRunner<Id, Failure> & { readonly close: () => Promise<void> } {
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
      const answer = (await pool.run(request)) as RoundAnswer<Failure>;
      if ('refusal' in answer) throw new RequestError(answer.refusal);
      return unshare(answer);
    },
    close: () => pool.destroy(),
  };
}
