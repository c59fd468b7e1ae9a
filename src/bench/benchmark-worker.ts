import { parentPort, workerData } from 'node:worker_threads';
import { runBenchmark } from './benchmark.js';
import { benchmarks } from './benchmarks.js';
import type { BenchmarkTask } from './run-benchmarks.js';

/** The worker thread of run-benchmarks.ts: answers with the readings of its benchmark. */
const { commandLine, index, quick } = workerData as BenchmarkTask;
parentPort?.postMessage(await runBenchmark(benchmarks(commandLine)[index], quick));
