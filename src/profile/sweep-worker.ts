import { parentPort, workerData } from 'node:worker_threads';
import { createSliceRunner, type SliceOf, type SweepPlan } from './sweep.js';

/** The worker thread of sweep.ts: answers each slice with what the plan finds there. */
const run = createSliceRunner(workerData as SweepPlan);
parentPort?.on('message', (slice: SliceOf<SweepPlan>) => {
  parentPort?.postMessage(run(slice));
});
