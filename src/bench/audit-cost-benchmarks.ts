import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { attentionOracle } from '../../oracles/index.js';
import { auditAccuracy } from '../audit/index.js';
import { encodeFromFloat64, formats } from '../formats/index.js';
import { writeSafetensors } from '../io/index.js';
import { secondsOf, type Benchmark, type Quantity } from './benchmark.js';
import { measureCommand } from './command-process.js';
import { normalProblem, type ProblemSize } from './normal-problem.js';

const quickSize: ProblemSize = { heads: 1, seqlen: 64, dim: 16 };

const options = { accuracy: auditAccuracy('bf16') };

/** A problem in bf16, and a file of it with the exact output in bf16: since that passes, no cause is looked for. */
async function audited(size: ProblemSize) {
  const problem = normalProblem('bf16', size);
  const { q, k, v } = problem;
  const { out } = attentionOracle(problem, options).quantities;
  const folder = await mkdtemp(join(tmpdir(), 'flashproof-bench-'));
  const path = join(folder, 'problem.safetensors');
  const data = encodeFromFloat64(formats.bf16, out.values);
  await writeSafetensors(path, { q, k, v, out: { ...q, data } });
  return { problem, path, dispose: () => rm(folder, { recursive: true, force: true }) };
}

/** Oracles that an audit may cost, and its peak memory. */
interface Targets {
  readonly oracles: number;
  readonly bytes?: number;
}

/** An audit of O by the command line, as a user runs it, beside the oracle of the same problem, which it has in it. */
function costBenchmark(commandLine: string, size: ProblemSize, targets: Targets): Benchmark {
  const { heads, seqlen, dim } = size;
  const name = `audit of O of [${heads}, ${seqlen}, ${dim}] bf16`;
  const time = { unit: 'oracles', better: 'lower' } as const;
  const memory: Quantity = { name: `${name}: peak memory`, unit: 'bytes', better: 'lower' };
  return {
    quantities: [
      { ...time, name: `${name}, one thread: time`, target: targets.oracles },
      { ...time, name: `${name}, 2 threads: time` },
      targets.bytes === undefined ? memory : { ...memory, target: targets.bytes },
    ],
    runs: 3,
    prepare: async (quick) => {
      const { problem, path, dispose } = await audited(quick ? quickSize : size);
      const audit = (threads: number) =>
        measureCommand(commandLine, ['audit', path, '--threads', `${threads}`]);
      return {
        measure: async () => {
          const oracle = secondsOf(() => void attentionOracle(problem, options));
          const [one, bytes] = await audit(1);
          const [two] = await audit(2);
          return [one / oracle, two / oracle, bytes];
        },
        dispose,
      };
    },
  };
}

/** What every audit costs, whatever its size is. */
function fixedCostBenchmark(commandLine: string): Benchmark {
  return {
    quantities: [{ name: 'audit of O of [1, 64, 16] bf16: time', unit: 's', better: 'lower' }],
    prepare: async () => {
      const { path, dispose } = await audited(quickSize);
      return {
        measure: async () => [(await measureCommand(commandLine, ['audit', path]))[0]],
        dispose,
      };
    },
  };
}

/** What audits cost: of one long head, of some heads, and of next to nothing. */
export function auditCostBenchmarks(commandLine: string): readonly Benchmark[] {
  return [
    costBenchmark(commandLine, { heads: 1, seqlen: 4096, dim: 128 }, { oracles: 5 }),
    costBenchmark(commandLine, { heads: 8, seqlen: 1024, dim: 128 }, { oracles: 5, bytes: 200e6 }),
    fixedCostBenchmark(commandLine),
  ];
}
