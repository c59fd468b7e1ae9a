import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import type { PartAnswer } from '../../audit/index.js';
import { machineFiles } from '../../io/index.js';
import { lazily } from '../../reuse.js';
import {
  threadPool,
  withoutViews,
  type AuditMeans,
  type HelperThread,
  type ThreadAnswer,
  type ThreadPool,
} from '../audit/index.js';
import type { RequestWithData } from './part-worker.js';

const partWorker = new URL('./part-worker.js', import.meta.url);

/**
 * Starts worker threads that answer requests by the function `name` of part-worker.ts, or of another module.
 * @param data the data for every thread
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
  return threadPool(
    threads,
    (request) => pool.run(withoutViews(request)),
    () => pool.destroy(),
  );
}

/** The threads and files of Node.js. */
export const nodeMeans: AuditMeans = { startThreads: startThreadPool, files: machineFiles };

/**
 * A worker thread that measures a part of one audit after the other; it is started by the first that asks. Its code stays
 * compiled, which that of threads started for one audit does not. Null on a machine with one core. To be closed.
 */
export function createHelperThread(): HelperThread | null {
  if (availableParallelism() === 1) return null;
  let started = false;
  const pool = lazily(() => {
    started = true;
    return new Piscina<RequestWithData, ThreadAnswer<PartAnswer>>({
      filename: fileURLToPath(new URL('./part-worker.js', import.meta.url)),
      name: 'measureWithData',
      minThreads: 1,
      maxThreads: 1,
      concurrentTasksPerWorker: 2,
    });
  });
  const close = async () => {
    if (started) await pool().destroy();
  };
  return {
    start: () => void pool(),
    runner: (data) =>
      threadPool(1, (request) => pool().run({ data, request: withoutViews(request) }), close),
    close,
  };
}
