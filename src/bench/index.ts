export { runBenchmarks, type BenchmarkOptions, type BenchmarkResults } from './run-benchmarks.js';
export type { Quantity, Reading } from './benchmark.js';
export type { Machine } from './machine.js';
