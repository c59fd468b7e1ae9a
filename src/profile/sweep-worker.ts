import { parentPort, workerData } from 'node:worker_threads';
import { lazily } from '../reuse.js';
import { RequestError } from '../request-error.js';
import { createSliceRunner, type SliceAnswer, type SliceOf, type SweepPlan } from './sweep.js';

const runner = lazily(() => createSliceRunner(workerData as SweepPlan));

function answerOf(slice: SliceOf<SweepPlan>): SliceAnswer<SweepPlan> {
  try {
    return { result: runner()(slice) };
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return { refusal: error.message };
  }
}

/** The worker thread of sweep.ts: answers each slice with the plan's results for it. */
parentPort?.on('message', (slice: SliceOf<SweepPlan>) => parentPort?.postMessage(answerOf(slice)));
