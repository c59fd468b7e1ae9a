import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import type { PartAnswer, PartRunner, PartSettings } from '../../audit/index.js';
import { RequestError } from '../../request-error.js';
import type { SharedProblem } from './part-source.js';
import { withoutViews } from './shared-values.js';

/** What every thread of an audit is given. */
export interface PartThreadData {
  readonly source: SharedProblem;
  readonly settings: PartSettings;
  /** Whether the bounds are wanted as they are made. */
  readonly withBounds: boolean;
}

/** Requests that wait in a thread's queue, so that it need not wait for the next. */
const queued = 2;

/** Threads that measure parts. To be closed. */
export interface PartThreads extends PartRunner {
  readonly close: () => Promise<void>;
}

/**
 * Starts threads that measure the parts of an audit. This thread only settles what they find: with parts of its own
 * to measure it would keep them waiting.
 */
export function startPartThreads(threads: number, data: PartThreadData): PartThreads {
  const pool = new Piscina({
    filename: fileURLToPath(new URL('./part-worker.js', import.meta.url)),
    name: 'measureRequest',
    workerData: data,
    minThreads: threads,
    maxThreads: threads,
    concurrentTasksPerWorker: 1,
  });
  return {
    run: async (requests, settle, done) => {
      const answers = new Map<number, PartAnswer>();
      let [next, settled, finished] = [0, 0, 0];
      const lane = async () => {
        while (next < requests.length) {
          const index = next++;
          const answer = (await pool.run(withoutViews(requests[index]))) as
            PartAnswer | { readonly refusal: string };
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
