import type { PartRunner } from '../../audit/index.js';
import { RequestError } from '../../request-error.js';
import type { PartThreadData, ThreadWork } from './thread-work.js';

/** Requests that wait in a thread's queue, so that it need not wait for the next. */
const queued = 2;

/** Threads that answer requests. To be closed. */
export interface ThreadPool<Request, Answer> extends PartRunner<Request, Answer> {
  readonly close: () => Promise<void>;
}

/** A thread that outlives an audit: it measures a part of each, for as long as the process carries out requests. */
export interface HelperThread {
  /** Starts the thread, unless it runs, so that it is ready when it is asked. */
  readonly start: () => void;
  /** Measures by the thread what is asked of one audit. */
  readonly runner: (data: PartThreadData) => PartRunner;
  readonly close: () => Promise<void>;
}

/** What a thread's function gives: an answer, or what the user did wrong, which is an answer too. */
export type ThreadAnswer<Answer> = Answer | { readonly refusal: string };

/**
 * Starts threads that answer requests by a function of `threadWork`.
 * @param data what every thread is given
 */
export type StartThreads = <Request, Answer extends object>(
  threads: number,
  work: keyof ThreadWork,
  data: object,
) => ThreadPool<Request, Answer>;

/**
 * A pool of so many threads. This thread only settles what they find: with requests of its own to answer it would keep
 * them waiting.
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
