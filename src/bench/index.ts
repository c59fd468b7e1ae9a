export { runBenchmarks, type BenchmarkResults, type Machine } from './run-benchmarks.js';
export type { Reading } from './benchmark.js';
