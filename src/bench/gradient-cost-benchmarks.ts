import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { attentionGradients, gradientOracle } from '../../oracles/index.js';
import { encodeFromFloat64, formats } from '../formats/index.js';
import { writeSafetensors } from '../io/index.js';
import type { Tensor } from '../problem/index.js';
import { secondsOf, type Benchmark } from './benchmark.js';
import { measureCommand } from './command-process.js';
import { normalProblem, type ProblemSize } from './normal-problem.js';

const quickSize: ProblemSize = { heads: 1, seqlen: 64, dim: 16 };

/** Exact results in bf16, in the shape of a tensor of the problem. */
function rounded(like: Tensor, { values }: { readonly values: Float64Array }): Tensor {
  return { ...like, data: encodeFromFloat64(formats.bf16, values) };
}

/** A problem in bf16, and a file of it with the exact gradients for a dO with the values of V: since they pass, no cause is looked for. */
async function audited(size: ProblemSize) {
  const problem = normalProblem('bf16', size);
  const { q, k, v } = problem;
  const dout = v;
  const exact = attentionGradients(problem, dout);
  const [dq, dk, dv] = [rounded(q, exact.dq!), rounded(k, exact.dk!), rounded(v, exact.dv!)];
  const folder = await mkdtemp(join(tmpdir(), 'flashproof-bench-'));
  const path = join(folder, 'problem.safetensors');
  await writeSafetensors(path, { q, k, v, dout, dq, dk, dv });
  return { problem, dout, path, dispose: () => rm(folder, { recursive: true, force: true }) };
}

/** An audit of dQ, dK and dV by the command line, beside the oracle of the same gradients, which it has in it. */
function costBenchmark(commandLine: string, size: ProblemSize): Benchmark {
  const { heads, seqlen, dim } = size;
  const name = `audit of dQ, dK and dV of [${heads}, ${seqlen}, ${dim}] bf16`;
  const time = { unit: 'oracles', better: 'lower' } as const;
  return {
    quantities: [
      { ...time, name: `${name}, one thread: time`, target: 5 },
      { ...time, name: `${name}, 2 threads: time` },
      { name: `${name}: peak memory`, unit: 'bytes', better: 'lower' },
    ],
    runs: 3,
    prepare: async (quick) => {
      const { problem, dout, path, dispose } = await audited(quick ? quickSize : size);
      const audit = (threads: number) =>
        measureCommand(commandLine, ['audit', path, '--threads', `${threads}`]);
      return {
        measure: async () => {
          const oracle = secondsOf(() => void [...gradientOracle(problem, dout)]);
          const [one, bytes] = await audit(1);
          const [two] = await audit(2);
          return [one / oracle, two / oracle, bytes];
        },
        dispose,
      };
    },
  };
}

/** What audits of gradients cost: of one head, and of some heads. */
export function gradientCostBenchmarks(commandLine: string): readonly Benchmark[] {
  return [
    costBenchmark(commandLine, { heads: 1, seqlen: 1024, dim: 64 }),
    costBenchmark(commandLine, { heads: 4, seqlen: 512, dim: 128 }),
  ];
}
