import { parentPort, workerData } from 'node:worker_threads';
import { runBenchmark } from './benchmark.js';
import { benchmarks } from './benchmarks.js';
import type { BenchmarkTask } from './run-benchmarks.js';

/** The worker thread of run-benchmarks.ts: answers with the readings of each of its benchmarks in turn. */
const { commandLine, only, indices, quick } = workerData as BenchmarkTask;
const all = benchmarks(commandLine, only);
for (const index of indices) parentPort?.postMessage(await runBenchmark(all[index], quick));
