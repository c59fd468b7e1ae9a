export {
  runBenchmarks,
  type BenchmarkOptions,
  type BenchmarkResults,
  type Machine,
} from './run-benchmarks.js';
export type { Quantity, Reading } from './benchmark.js';
