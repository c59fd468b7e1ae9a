import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import type { PartRunner } from '../../audit/index.js';
import { RequestError } from '../../request-error.js';
import { withoutViews } from './shared-values.js';

/** Requests that wait in a thread's queue, so that it need not wait for the next. */
const queued = 2;

/** Threads that answer requests. To be closed. */
export interface ThreadPool<Request, Answer> extends PartRunner<Request, Answer> {
  readonly close: () => Promise<void>;
}

/** What a worker thread's function gives: an answer, or what the user did wrong, which is an answer too. */
export type ThreadAnswer<Answer> = Answer | { readonly refusal: string };

const partWorker = new URL('./part-worker.js', import.meta.url);

/**
 * Starts threads that answer requests by the function `name` of part-worker.ts, or of another module. This thread only settles what they
 * find: with requests of its own to answer it would keep them waiting.
 * @param data what every thread is given
 */
export function startThreadPool<Request, Answer extends object>(
  threads: number,
  name: string,
  data: object,
  worker = partWorker,
): ThreadPool<Request, Answer> {
  const pool = new Piscina({
    filename: fileURLToPath(worker),
    name,
    workerData: data,
    minThreads: threads,
    maxThreads: threads,
    concurrentTasksPerWorker: 1,
  });
  return {
    run: async (requests, settle, done) => {
      const answers = new Map<number, Answer>();
      let [next, settled, finished] = [0, 0, 0];
      const lane = async () => {
        while (next < requests.length) {
          const index = next++;
          const answer = (await pool.run(withoutViews(requests[index]))) as ThreadAnswer<Answer>;
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
    close: () => pool.destroy(),
  };
}
