import { arithmeticBenchmarks, formatBenchmarks } from './arithmetic-benchmarks.js';
import { auditBenchmark, boundBenchmarks, coldStartBenchmark } from './audit-benchmarks.js';
import type { Benchmark } from './benchmark.js';
import { fileBenchmarks } from './file-benchmarks.js';
import { forwardBenchmarks, machineBenchmarks } from './kernel-benchmarks.js';
import { oracleBenchmarks } from './oracle-benchmarks.js';
import { scalarBenchmarks } from './scalar-benchmarks.js';

/**
 * Everything that is measured, in the order it is measured in. `commandLine` is the program whose cold
 * start is measured: a JavaScript file that takes --version.
 */
export function benchmarks(commandLine: string): readonly Benchmark[] {
  return [
    ...oracleBenchmarks,
    ...boundBenchmarks,
    ...forwardBenchmarks,
    ...machineBenchmarks,
    auditBenchmark,
    ...formatBenchmarks,
    ...arithmeticBenchmarks,
    ...scalarBenchmarks,
    ...fileBenchmarks,
    coldStartBenchmark(commandLine),
  ];
}
