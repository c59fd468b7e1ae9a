import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openTensorFile, writeSafetensors } from '../io/index.js';
import type { Benchmark } from './benchmark.js';
import { arithmeticBenchmarks, formatBenchmarks } from './arithmetic-benchmarks.js';
import { auditCostBenchmarks } from './audit-cost-benchmarks.js';
import { auditBenchmark, boundBenchmarks, coldStartBenchmark } from './audit-benchmarks.js';
import { fixedCostBenchmarks } from './fixed-cost-benchmarks.js';
import { lawBenchmarks } from './law-benchmarks.js';
import { longAuditBenchmark } from './long-audit-benchmark.js';
import { longRowBenchmark } from './long-row-benchmark.js';
import { backwardBenchmark } from './backward-benchmark.js';
import { forwardBenchmarks, machineBenchmarks } from './kernel-benchmarks.js';
import { gradientBoundBenchmark } from './gradient-benchmarks.js';
import { gradientCostBenchmarks } from './gradient-cost-benchmarks.js';
import { ptxBenchmarks } from './ptx-benchmarks.js';
import { oracleBenchmarks } from './oracle-benchmarks.js';
import { recurrenceBenchmarks } from './recurrence-benchmarks.js';
import { scalarBenchmarks } from './scalar-benchmarks.js';

const bytes = 2 ** 28;
const quickBytes = 2 ** 16;

/** Reading one bf16 tensor of 256 MiB whole; from memory, where the system caches files. */
const reading: Benchmark = {
  quantities: [{ name: 'safetensors: read a tensor', unit: 'bytes/s', better: 'higher' }],
  prepare: async (quick) => {
    const size = quick ? quickBytes : bytes;
    const folder = await mkdtemp(join(tmpdir(), 'flashproof-bench-'));
    const path = join(folder, 'tensor.safetensors');
    const data = new Uint16Array(size / 2).fill(0x3f80);
    await writeSafetensors(path, { q: { format: 'bf16', shape: [data.length], data } });
    return {
      measure: async () => {
        const start = performance.now();
        const file = await openTensorFile(path);
        await file.read('q');
        await file.close();
        return [size / ((performance.now() - start) / 1000)];
      },
      dispose: () => rm(folder, { recursive: true, force: true }),
    };
  },
};

/** Throughput of tensor files. */
const fileBenchmarks: readonly Benchmark[] = [reading];

/**
 * All benchmarks, in the order of measurement. `commandLine` is the program whose cold start is measured and that
 * audits long files: a JavaScript file.
 * @param only words that a benchmark has in the name of a quantity; default: all except those that need minutes or
 * gigabytes of their own
 */
export function benchmarks(commandLine: string, only?: string): readonly Benchmark[] {
  const all = usualBenchmarks(commandLine);
  if (only === undefined) return all;
  const isMeant = ({ quantities }: Benchmark) => quantities.some(({ name }) => name.includes(only));
  const long = [longRowBenchmark(commandLine), longAuditBenchmark(commandLine)];
  return [...all, ...lawBenchmarks(), ...long].filter(isMeant);
}

function usualBenchmarks(commandLine: string): readonly Benchmark[] {
  return [
    ...oracleBenchmarks,
    ...boundBenchmarks,
    gradientBoundBenchmark,
    ...forwardBenchmarks,
    backwardBenchmark,
    ...machineBenchmarks,
    ...ptxBenchmarks,
    auditBenchmark(commandLine),
    ...auditCostBenchmarks(commandLine),
    ...gradientCostBenchmarks(commandLine),
    ...recurrenceBenchmarks(commandLine),
    ...fixedCostBenchmarks(commandLine),
    ...formatBenchmarks,
    ...arithmeticBenchmarks,
    ...scalarBenchmarks,
    ...fileBenchmarks,
    coldStartBenchmark(commandLine),
  ];
}
