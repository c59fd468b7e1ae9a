import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { recurrentOracle } from '../../oracles/index.js';
import { encodeFromFloat64, formats } from '../formats/index.js';
import { writeRecurrence } from '../io/index.js';
import type { RecurrentProblem, Tensor } from '../problem/index.js';
import { rateOf, secondsOf, type Benchmark } from './benchmark.js';
import { measureCommand } from './command-process.js';
import { normalValues, type ProblemSize } from './normal-problem.js';

const oracleSize: ProblemSize = { heads: 2, seqlen: 2048, dim: 128 };
const auditSize: ProblemSize = { heads: 1, seqlen: 256, dim: 128 };
const quickSize: ProblemSize = { heads: 1, seqlen: 64, dim: 16 };

/** Tokens of a head in a second, of one thread, at which two of them take a minute for eight heads of 16,384 tokens. */
const target = (8 * 16384) / 60 / 2;

/** What the normalisation of q and k adds to the sum of squares, as kernels of the rule do. */
const epsilon = 1e-6;

/** Shares of 1 from numbers of any sign: β, and what a token leaves of the state. */
function sigmoid(x: number): number {
  return 1 / (1 + Math.exp(-x));
}

/** A gated delta rule: standard normal q, k and v in bf16, q and k normalised; β and e^g are shares of 1 in fp32. */
function gatedDeltaRule({ heads, seqlen, dim }: ProblemSize): RecurrentProblem {
  const vectors = (seed: number): Tensor => ({
    format: 'bf16',
    shape: [1, seqlen, heads, dim],
    data: encodeFromFloat64(formats.bf16, normalValues(seqlen * heads * dim, seed)),
  });
  const numbers = (seed: number, of: (x: number) => number): Tensor => ({
    format: 'fp32',
    shape: [1, seqlen, heads],
    data: Float32Array.from(normalValues(seqlen * heads, seed), of),
  });
  return {
    family: 'gated-delta',
    q: vectors(1),
    k: vectors(2),
    v: vectors(3),
    g: numbers(4, (x) => Math.log(sigmoid(x + 4))),
    beta: numbers(5, sigmoid),
    normalisation: { epsilon },
  };
}

function sizeWords({ heads, seqlen, dim }: ProblemSize): string {
  return `gated delta rule, [1, ${seqlen}, ${heads}, ${dim}] bf16`;
}

/** The oracle on one thread, in tokens of a head. */
const oracleBenchmark: Benchmark = {
  quantities: [
    { name: `oracle: ${sizeWords(oracleSize)}`, unit: 'tokens/s', better: 'higher', target },
  ],
  prepare: (quick) => {
    const size = quick ? quickSize : oracleSize;
    const problem = gatedDeltaRule(size);
    return rateOf(size.heads * size.seqlen, () => void recurrentOracle(problem));
  },
};

/** An audit of O by the command line, beside the oracle of the same problem, which it has in it; it passes. */
function auditBenchmark(commandLine: string): Benchmark {
  const name = `audit of ${sizeWords(auditSize)}`;
  return {
    quantities: [
      { name: `${name}, one thread: time`, unit: 's', better: 'lower' },
      { name: `${name}, one thread: time by that of the oracle`, unit: 'oracles', better: 'lower' },
      { name: `${name}: peak memory`, unit: 'bytes', better: 'lower' },
    ],
    runs: 3,
    isWarm: true,
    prepare: async (quick) => {
      const problem = gatedDeltaRule(quick ? quickSize : auditSize);
      const { out } = recurrentOracle(problem);
      const folder = await mkdtemp(join(tmpdir(), 'flashproof-bench-'));
      const path = join(folder, 'problem.safetensors');
      const data = encodeFromFloat64(formats.bf16, out.values);
      await writeRecurrence(path, { problem, results: { out: { ...problem.v, data } } });
      return {
        measure: async () => {
          const oracle = secondsOf(() => void recurrentOracle(problem));
          const audit = ['audit', path, '--threads', '1'];
          const [seconds, bytes] = await measureCommand(commandLine, audit);
          return [seconds, seconds / oracle, bytes];
        },
        dispose: () => rm(folder, { recursive: true, force: true }),
      };
    },
  };
}

/** The oracle of a recurrence, and an audit by it. */
export function recurrenceBenchmarks(commandLine: string): readonly Benchmark[] {
  return [oracleBenchmark, auditBenchmark(commandLine)];
}
