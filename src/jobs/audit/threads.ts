import type { ClosedRunner, PartAnswer, PartRequest, PartRunner } from '../../audit/index.js';
import { RequestError } from '../../request-error.js';
import type { PartThreadData, ThreadWork } from './thread-work.js';

/** Number of requests queued for a thread, so that it need not wait for the next. */
const queued = 2;

/** Threads that answer requests. Must be closed. */
export type ThreadPool<Request, Answer> = ClosedRunner<Request, Answer>;

/** A thread that outlives an audit: it measures a part of each, as long as the process carries out requests. */
export interface HelperThread {
  /** Starts the thread, between audits, if one has asked for it and it does not run; resolves when it is ready. */
  readonly prepare: () => Promise<void>;
  /** Runs the requests of one audit on the thread; null until that is ready. */
  readonly runner: (data: PartThreadData) => PartRunner<PartRequest, PartAnswer> | null;
  readonly close: () => Promise<void>;
}

/** The result of a thread's function: an answer, or the message of a user error, which is an answer too. */
export type ThreadAnswer<Answer> = Answer | { readonly refusal: string };

/**
 * Starts threads that answer requests by a function of `threadWork`.
 * @param data the data for every thread
 */
export type StartThreads = <Request, Answer extends object>(
  threads: number,
  work: keyof ThreadWork,
  data: object,
) => ThreadPool<Request, Answer>;

/**
 * A pool of that many threads. This thread only settles their answers: if it answered requests too, it would keep them
 * waiting.
 * @param ask sends a request to a thread that is free, or soon will be
 */
export function threadPool<Request, Answer extends object>(
  threads: number,
  ask: (request: Request) => Promise<ThreadAnswer<Answer>>,
  close: () => Promise<void>,
): ThreadPool<Request, Answer> {
  return {
    run: async (requests, settle, done) => {
      const answers = new Map<number, Answer>();
      let [next, settled, finished] = [0, 0, 0];
      const lane = async () => {
        while (next < requests.length) {
          const index = next++;
          const answer = await ask(requests[index]);
          if ('refusal' in answer) throw new RequestError(answer.refusal);
          answers.set(index, answer);
          done(++finished);
          for (let ready; (ready = answers.get(settled)) !== undefined; settled++) {
            answers.delete(settled);
            settle(ready, settled);
          }
        }
      };
      await Promise.all(Array.from({ length: queued * threads }, lane));
    },
    close,
  };
}
