import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { attentionOracle } from '../../oracles/index.js';
import { auditedAccuracy, writeAudited } from './audited-problem.js';
import { secondsOf, type Benchmark, type Quantity } from './benchmark.js';
import { measureCommand } from './command-process.js';
import type { ProblemSize } from './normal-problem.js';

const quickSize: ProblemSize = { heads: 1, seqlen: 64, dim: 16 };

/** A problem, and a file of it with its output, in a folder of its own. */
async function audited(size: ProblemSize) {
  const folder = await mkdtemp(join(tmpdir(), 'flashproof-bench-'));
  const dispose = () => rm(folder, { recursive: true, force: true });
  return { ...(await writeAudited(folder, size)), dispose };
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
          const oracle = secondsOf(() => void attentionOracle(problem, auditedAccuracy));
          const [one, bytes] = await audit(1);
          const [two] = await audit(2);
          return [one / oracle, two / oracle, bytes];
        },
        dispose,
      };
    },
  };
}

/** What audits cost: of one long head, and of some heads. */
export function auditCostBenchmarks(commandLine: string): readonly Benchmark[] {
  return [
    costBenchmark(commandLine, { heads: 1, seqlen: 4096, dim: 128 }, { oracles: 5 }),
    costBenchmark(commandLine, { heads: 8, seqlen: 1024, dim: 128 }, { oracles: 5, bytes: 200e6 }),
  ];
}
