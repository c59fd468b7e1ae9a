import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import { machineFiles } from '../../io/index.js';
import { threadPool, withoutViews, type AuditMeans, type ThreadPool } from '../audit/index.js';

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
