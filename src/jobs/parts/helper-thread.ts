import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Piscina } from 'piscina';
import type { PartAnswer, PartRequest } from '../../audit/index.js';
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

/** Starts threads that last until they are closed. What starts them is loaded by the first that asks: few audits do. */
async function startPool<Task, Result>(
  options: ConstructorParameters<typeof Piscina>[0],
): Promise<Piscina<Task, Result>> {
  const { Piscina: Pool } = await import('piscina');
  return new Pool<Task, Result>(options);
}

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
  const pool = startPool<unknown, ThreadAnswer<Answer>>({
    filename: fileURLToPath(worker),
    name,
    workerData: data,
    minThreads: threads,
    maxThreads: threads,
    concurrentTasksPerWorker: 1,
  });
  return threadPool(
    threads,
    async (request) => (await pool).run(withoutViews(request)),
    async () => (await pool).destroy(),
  );
}

/** The threads and files of Node.js. */
export const nodeMeans: AuditMeans = { startThreads: startThreadPool, files: machineFiles };

/**
 * A worker thread that measures a part of one audit after the other. Its code stays compiled, which that of threads started for
 * one audit does not. Until it has started, audits do without it: it takes longer to start than it would save them. Null on a
 * machine with one core. To be closed.
 */
export function createHelperThread(): HelperThread | null {
  if (availableParallelism() === 1) return null;
  let [isWanted, isReady] = [false, false];
  const pool = lazily(() =>
    startPool<RequestWithData | null, ThreadAnswer<PartAnswer>>({
      filename: fileURLToPath(partWorker),
      name: 'measureWithData',
      minThreads: 1,
      maxThreads: 1,
      concurrentTasksPerWorker: 2,
    }),
  );
  let started: Promise<void> | null = null;
  const start = async () => {
    try {
      await (await pool()).run(null, { name: 'load' });
      isReady = true;
    } catch {
      // It is closed before it has started, or there can be no more threads: audits do without it.
    }
  };
  const close = async () => {
    if (started !== null) await (await pool()).destroy();
  };
  return {
    prepare: () => (isWanted ? (started ??= start()) : Promise.resolve()),
    runner: (data) => {
      isWanted = true;
      const ask = async (request: PartRequest) =>
        (await pool()).run({ data, request: withoutViews(request) });
      return isReady ? threadPool(1, ask, close) : null;
    },
    close,
  };
}
