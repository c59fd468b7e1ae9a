import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import type { PartAnswer } from '../../audit/index.js';
import { lazily } from '../../reuse/index.js';
import { threadPool, withoutViews, type HelperThread, type ThreadAnswer } from '../audit/index.js';
import type { RequestWithData } from './part-worker.js';

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
