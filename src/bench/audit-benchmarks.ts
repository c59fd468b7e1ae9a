import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { attentionOracle } from '../../oracles/index.js';
import { encodeFromFloat64, formats } from '../formats/index.js';
import { writeSafetensors } from '../io/index.js';
import type { Problem } from '../problem/index.js';
import { type Benchmark, secondsOf } from './benchmark.js';
import { measureCommand } from './command-process.js';
import { normalProblem } from './normal-problem.js';
import {
  anyKernelArithmetic,
  auditAccuracy,
  fa4Arithmetic,
  forEachRowsBound,
  type KernelArithmetic,
} from '../audit/index.js';
import { multiplyAdds } from './oracle-benchmarks.js';

const auditSize = { heads: 8, seqlen: 1024, dim: 128 };
const quickAuditSize = { heads: 1, seqlen: 64, dim: 16 };

/** A file with a problem, the exact output in bf16 and the exact LSE in fp32: since they pass, no cause is looked for. */
async function writeAudited(path: string, quick: boolean): Promise<void> {
  const problem = normalProblem('bf16', quick ? quickAuditSize : auditSize);
  const { q, k, v } = problem;
  const { out, lse } = attentionOracle(problem).quantities;
  await writeSafetensors(path, {
    q,
    k,
    v,
    out: { ...q, data: encodeFromFloat64(formats.bf16, out.values) },
    lse: { format: 'fp32', shape: q.shape.slice(0, 2), data: Float32Array.from(lse.values) },
  });
}

/** An audit of output and LSE, bf16, [8, 1024, 128], by the command line on all cores, as a user runs it. */
export const auditBenchmark = (commandLine: string): Benchmark => ({
  quantities: [
    { name: 'audit of [8, 1024, 128] bf16: time', unit: 's', better: 'lower', target: 20 },
    {
      name: 'audit of [8, 1024, 128] bf16: peak memory',
      unit: 'bytes',
      better: 'lower',
      target: 600e6,
    },
  ],
  prepare: async (quick) => {
    const folder = await mkdtemp(join(tmpdir(), 'flashproof-bench-'));
    const path = join(folder, 'problem.safetensors');
    await writeAudited(path, quick);
    return {
      measure: () => measureCommand(commandLine, ['audit', path]),
      dispose: () => rm(folder, { recursive: true, force: true }),
    };
  },
});

const boundSize = { heads: 1, seqlen: 2048, dim: 128 };
const quickBoundSize = { heads: 1, seqlen: 64, dim: 16 };

/** Maximum cost of bounds, in oracles. */
const mostOracles = 3;

const cases: readonly (readonly [string, (problem: Problem) => KernelArithmetic])[] = [
  ['fa4', (problem) => fa4Arithmetic(problem)],
  ['any kernel', (problem) => anyKernelArithmetic(problem, 'bf16')],
];

/** The bounds of every technique, and their cost beside the oracle that they need. */
export const boundBenchmarks: readonly Benchmark[] = cases.map(([name, arithmeticOf]) => ({
  quantities: [
    { name: `bounds of ${name}, bf16`, unit: 'multiply-adds/s', better: 'higher' },
    {
      name: `bounds of ${name}, bf16: time`,
      unit: 'oracles',
      better: 'lower',
      target: mostOracles,
    },
  ],
  prepare: (quick) => {
    const problem = normalProblem('bf16', quick ? quickBoundSize : boundSize);
    const options = { accuracy: auditAccuracy('bf16') };
    const reference = attentionOracle(problem, options);
    const arithmetic = arithmeticOf(problem);
    return {
      measure: () => {
        const oracle = secondsOf(() => void attentionOracle(problem, options));
        const bounds = secondsOf(() =>
          forEachRowsBound(problem, reference, arithmetic, () => undefined),
        );
        return [multiplyAdds(problem) / bounds, bounds / oracle];
      },
    };
  },
}));

/** The time of `flashproof --version` from the start of the process to its end. */
export function coldStartBenchmark(commandLine: string): Benchmark {
  return {
    quantities: [{ name: 'command line: cold start', unit: 's', better: 'lower', target: 0.15 }],
    runs: 10,
    prepare: () => ({
      measure: () => [
        secondsOf(() => {
          const { status } = spawnSync(process.execPath, [commandLine, '--version']);
          if (status !== 0) throw new Error(`${commandLine} --version exits with ${status}`);
        }),
      ],
    }),
  };
}
