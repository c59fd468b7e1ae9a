import { threadPool, type StartThreads } from '../../../src/browser/index.js';
import type { PartMessage, PartReply } from './part-worker.js';

/** A worker, and who waits for its answer; one at a time. */
function startWorker(first: PartMessage) {
  const worker = new Worker(new URL('./part-worker.ts', import.meta.url), { type: 'module' });
  worker.postMessage(first);
  return {
    ask: (request: unknown): Promise<unknown> =>
      new Promise((resolve, reject) => {
        worker.onmessage = ({ data }: MessageEvent<PartReply>) =>
          'error' in data ? reject(new Error(data.error)) : resolve(data.answer);
        worker.onerror = ({ message }) => reject(new Error(message || 'a worker did not start'));
        worker.postMessage({ kind: 'request', request } satisfies PartMessage);
      }),
    close: () => worker.terminate(),
  };
}

/** Threads of a browser: workers, each with a copy of the data where the page cannot share memory. */
export const startWorkers: StartThreads = (threads, work, data) => {
  const workers = Array.from({ length: threads }, () => startWorker({ kind: 'start', work, data }));
  const free = [...workers];
  const waiting: ((worker: (typeof workers)[0]) => void)[] = [];
  const next = (): Promise<(typeof workers)[0]> => {
    const worker = free.pop();
    return worker === undefined
      ? new Promise((resolve) => waiting.push(resolve))
      : Promise.resolve(worker);
  };
  const release = (worker: (typeof workers)[0]): void => {
    const first = waiting.shift();
    if (first === undefined) free.push(worker);
    else first(worker);
  };
  return threadPool(
    threads,
    async (request) => {
      const worker = await next();
      try {
        return (await worker.ask(request)) as never;
      } finally {
        release(worker);
      }
    },
    async () => workers.forEach((worker) => worker.close()),
  );
};
