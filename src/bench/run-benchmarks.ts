import { Worker } from 'node:worker_threads';
import type { Reading } from './benchmark.js';
import { benchmarks } from './benchmarks.js';
import { describeMachine, type Machine } from './machine.js';

export interface BenchmarkOptions {
  /** The program whose cold start is measured: a JavaScript file that takes --version. */
  readonly commandLine: string;
  /** Small data, one run each: shows that everything runs. The numbers mean little. */
  readonly quick?: boolean;
  /** Called before each benchmark with its name, how many are done and how many there are. */
  readonly progress?: (name: string, done: number, total: number) => void;
}

/** All readings, and the machine they hold for. */
export interface BenchmarkResults {
  readonly quick: boolean;
  readonly machine: Machine;
  readonly readings: readonly Reading[];
}

/** Which benchmark a worker thread is to run. */
export interface BenchmarkTask {
  readonly commandLine: string;
  readonly index: number;
  readonly quick: boolean;
}

/** Runs one benchmark in a new thread. */
function runInThread(workerData: BenchmarkTask): Promise<Reading[]> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./benchmark-worker.js', import.meta.url), { workerData });
    worker.on('message', resolve);
    worker.on('error', reject);
    worker.on('exit', (code) => reject(new Error(`a worker thread stopped with status ${code}`)));
  });
}

/**
 * Runs every benchmark, one after another, each on one thread of its own: a thread compiles for
 * itself, so no benchmark meets code that another has made the compiler specialise or generalise.
 */
export async function runBenchmarks(options: BenchmarkOptions): Promise<BenchmarkResults> {
  const { commandLine, quick = false, progress } = options;
  const machine = describeMachine();
  const all = benchmarks(commandLine);
  const readings: Reading[] = [];
  for (const [index, { quantities }] of all.entries()) {
    progress?.(quantities[0].name, index, all.length);
    readings.push(...(await runInThread({ commandLine, index, quick })));
  }
  return { quick, machine, readings };
}
