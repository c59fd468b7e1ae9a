import { arch, availableParallelism, cpus, loadavg, platform, totalmem } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Reading } from './benchmark.js';
import { benchmarks } from './benchmarks.js';

/** Facts about a machine that benchmark numbers depend on. */
export interface Machine {
  readonly cpu: string;
  /** Cores this process may use. */
  readonly cores: number;
  readonly memoryBytes: number;
  readonly node: string;
  readonly platform: string;
  /** Mean number of runnable processes over the last minute; above 0 others compete. Always 0 on Windows. */
  readonly load: number;
}

/** This machine, now. */
function describeMachine(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    node: process.version,
    platform: `${platform()} ${arch()}`,
    load: loadavg()[0],
  };
}

export interface BenchmarkOptions {
  /** The program whose cold start is measured: a JavaScript file that takes --version. */
  readonly commandLine: string;
  /** Words in the names of the benchmarks to run; default: see `benchmarks`. */
  readonly only?: string;
  /** Small data, one run each: shows that everything runs. The numbers mean little. */
  readonly quick?: boolean;
  /** Called before each benchmark with its name, the number of finished ones and the number of all. */
  readonly progress?: (name: string, done: number, total: number) => void;
}

/** All readings, and the machine that they hold for. */
export interface BenchmarkResults {
  readonly quick: boolean;
  readonly machine: Machine;
  readonly readings: readonly Reading[];
}

/** The benchmarks that a worker thread runs, one after another. */
export interface BenchmarkTask {
  readonly commandLine: string;
  readonly only: string | undefined;
  readonly indices: readonly number[];
  readonly quick: boolean;
}

/** Runs benchmarks in one new thread; `onReadings` is called with the readings of each in turn. */
function runInThread(
  workerData: BenchmarkTask,
  onReadings: (readings: readonly Reading[]) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./benchmark-worker.js', import.meta.url), { workerData });
    let missing = workerData.indices.length;
    worker.on('message', (readings: readonly Reading[]) => {
      onReadings(readings);
      if (--missing === 0) resolve();
    });
    worker.on('error', reject);
    worker.on('exit', (code) => reject(new Error(`a worker thread stopped with status ${code}`)));
  });
}

/**
 * Runs every benchmark, one after another, each on one thread of its own: a thread compiles for
 * itself, so no benchmark meets code that another has made the compiler specialise or generalise.
 * Quick benchmarks measure nothing and share one thread, because its start takes longer than they
 * do.
 */
export async function runBenchmarks(options: BenchmarkOptions): Promise<BenchmarkResults> {
  const { commandLine, only, quick = false, progress } = options;
  const machine = describeMachine();
  const all = benchmarks(commandLine, only);
  const readings: Reading[] = [];
  let done = 0;
  const begin = (): void => {
    if (done < all.length) progress?.(all[done].quantities[0].name, done, all.length);
  };
  const indices = [...all.keys()];
  const threads = quick ? [indices] : indices.map((index) => [index]);
  begin();
  for (const indices of threads)
    await runInThread({ commandLine, only, indices, quick }, (ofOne) => {
      readings.push(...ofOne);
      done++;
      begin();
    });
  return { quick, machine, readings };
}
