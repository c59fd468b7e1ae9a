import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runKernelModel } from '../../kernels/index.js';
import { attentionProblem } from '../../properties/index.js';
import { isWithinScoreLimit } from '../../properties/laws/promised-problem.js';
import { randomValues, type RandomValues } from '../../properties/problems/values.js';
import { attentionOracle, type AttentionReference } from '../../oracles/index.js';
import {
  auditAccuracy,
  judgeOutputs,
  type KernelOutputs,
  type PremiseDeclaration,
} from '../../src/audit/index.js';
import type { FormatName } from '../../src/formats/index.js';
import type { Problem } from '../../src/problem/index.js';
import { fromEnvironment, scaled, testSeed } from '../setup/effort.js';
import { mayVanish } from '../setup/expect-attention.js';
import { turns } from '../setup/turns.js';
import { cubicExponential, roundingKernel, type WeightReference } from './rounding-kernel.js';

const inTurn = turns(import.meta.url);

/**
 * Audits of correct kernels over all regimes, formats and liberties, none of which may fail: at the stated
 * 1e-9 an audit not one in 2 × 10^4 does. FALSE_ALARM_AUDITS says how many, FALSE_ALARM_SHARD=3/16 which part of
 * them this run makes; each prints one line.
 */
const audits = fromEnvironment('FALSE_ALARM_AUDITS', 0);

function shardOf(text: string): { readonly index: number; readonly count: number } {
  const [index, count] = text.split('/').map(Number) as [number, number];
  if (!(index >= 1 && index <= count)) throw new Error(`FALSE_ALARM_SHARD is ${text}; give 3/16`);
  return { index, count };
}

/** Eight-bit inputs come with a 16-bit output, the others with their own format. */
const outputFormats: Readonly<Partial<Record<FormatName, FormatName>>> = {
  e4m3: 'bf16',
  e5m2: 'fp16',
};
const formats: readonly FormatName[] = ['bf16', 'fp16', 'fp32', 'e4m3', 'e5m2', 'tf32'];
/** Formats of a kernel that holds a sum of weights of up to e^80. */
const wideFormats: readonly FormatName[] = ['bf16', 'fp32', 'tf32'];

/** What kernels raise P by; in e4m3, of which the audit takes 2^7 for granted, one that does not has to say so. */
const weightScales: Readonly<Partial<Record<FormatName, readonly number[]>>> = {
  e4m3: [1, 2 ** 7, 240, 2 ** 8],
  e5m2: [1, 2 ** 8],
};

const pick = <T>(list: readonly T[], random: RandomValues): T =>
  list[random.integer(0, list.length - 1)];

/** A problem of any regime, small enough that its audit takes a third of a second. */
function drawProblem(seed: number, random: RandomValues): Problem {
  const format = random.uniform() < 0.6 ? formats[random.integer(0, 1)] : pick(formats, random);
  const wide = random.uniform() < 0.15;
  const dims = wide ? { min: 64, max: 128 } : { min: 16, max: 48 };
  const rows = wide ? { min: 40, max: 130 } : { min: 40, max: 300 };
  const constraints = {
    formats: [format],
    batch: { max: 1 },
    kvHeads: { max: 1 },
    groupSize: { max: 2 },
    queries: rows,
    keys: rows,
    qkDim: dims,
    vDim: dims,
    window: false,
    specialValues: [],
    emptyRows: random.uniform() < 0.25,
    ...(random.uniform() < 0.85 ? { softcap: false } : {}),
    ...(random.uniform() < 0.7 ? { scales: ['default'] as const } : {}),
  };
  return fc.sample(attentionProblem(constraints), { seed, numRuns: 1 })[0];
}

/** The suite's own limit: kernels that subtract a rounded m·c break down beyond. */
const scoreLimit = { raw: 2 ** 100, scaled: 2 ** 20 };
/** Sums of e^score up to here are far within fp32. */
const largestLogarithm = 60;

/** What a correct kernel does to the problem, and how, in words. */
function runKernel(
  problem: Problem,
  largest: number,
  random: RandomValues,
): {
  readonly kernel: string;
  readonly outputs: KernelOutputs;
  /** What the kernel has to declare. */
  readonly premises?: PremiseDeclaration;
} {
  const { format } = problem.q;
  const half = format === 'bf16' || format === 'fp16';
  const turn = random.uniform();
  const plain = problem.softcap === null && problem.scale > 0;
  if (turn < 0.12 && half && plain)
    return { kernel: 'fa4', outputs: runKernelModel('fa4', problem) };
  if (turn < 0.17) return { kernel: 'naive-fp32', outputs: runKernelModel('naive-fp32', problem) };
  const references: readonly WeightReference[] = ['running', 'running', 'row', 'sum'];
  const small = largest < largestLogarithm && wideFormats.includes(format);
  const maximum = small && random.uniform() < 0.1 ? 'none' : pick(references, random);
  const constant = random.uniform() * 2;
  const lags = {
    none: () => 0,
    constant: () => constant,
    'by row': (row: number) => (row * 0.37) % 8,
    'of some rows': (row: number) => (row % 3 === 0 ? 2.3 : 0),
  } as const;
  const lag = half ? pick(Object.keys(lags) as (keyof typeof lags)[], random) : 'none';
  const tile = pick([32, 64, 128, 400], random);
  const order = pick(['ascending', 'descending'] as const, random);
  const isCubic = half && random.uniform() < 0.3;
  const sumsTruncate = format !== 'fp32' && random.uniform() < 0.3;
  const weightScale = pick(weightScales[format] ?? [1], random);
  const outputs = roundingKernel(problem, {
    outputFormat: outputFormats[format] ?? format,
    lag: lags[lag],
    tile,
    order,
    maximum,
    sumsTruncate,
    weightScale,
    ...(isCubic ? { exponential: cubicExponential } : {}),
  });
  const words = [`${tile} keys`, order, `relative to ${maximum}`, `lag ${lag}`];
  if (isCubic) words.push('cubic');
  if (sumsTruncate) words.push('truncating sums');
  if (weightScale !== 1) words.push(`P times ${weightScale}`);
  const isUnusual = format === 'e4m3' && weightScale === 1;
  return { kernel: words.join(', '), outputs, ...(isUnusual ? { premises: { weightScale } } : {}) };
}

/** The largest magnitude among LSE and maximum of all rows that have any. */
function largestOf({
  maximum,
  quantities: {
    lse: { values: lse },
  },
}: AttentionReference): number {
  const finite = [...lse, ...maximum].filter(Number.isFinite);
  return finite.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
}

/** Audit number `index` of a campaign: what failed, or null; not made where no kernel can be correct. */
function auditOne(
  index: number,
  seed: number,
): { readonly failure: string | null; readonly isMade: boolean } {
  const random = randomValues(Math.imul(index + 1, 0x9e3779b1) ^ seed);
  const problem = drawProblem(random.integer(0, 2 ** 31 - 1), random);
  const outputFormat = outputFormats[problem.q.format] ?? problem.q.format;
  const reference = attentionOracle(problem, { accuracy: auditAccuracy(outputFormat) });
  const largest = largestOf(reference);
  if (!isWithinScoreLimit(problem, scoreLimit)) return { failure: null, isMade: false };
  const { kernel, outputs, premises } = runKernel(problem, largest, random);
  const { verdict, shape } = judgeOutputs(problem, outputs, {
    diagnose: false,
    ...(premises === undefined ? {} : { premises }),
    ...(outputs.out.format === outputFormat ? { reference } : {}),
  });
  const { findings, judged, sentence } = verdict;
  // Where underflow may take all of the output there is nothing to judge.
  if (findings.length === 0 && (judged || mayVanish(problem)))
    return { failure: null, isMade: judged };
  const sizes = `${shape.heads} × ${shape.queries} × ${shape.keys}, d ${shape.qkDim}, ${shape.vDim}`;
  return {
    isMade: true,
    failure: `audit ${index}: ${problem.q.format}, ${sizes}, ${kernel}: ${sentence} ${findings.map(({ test, statement }) => `${test}: ${statement}`).join('; ')}`,
  };
}

describe.runIf(audits > 0)('a campaign of audits of correct kernels', () => {
  it(
    'raises no alarm',
    () => {
      const { index, count } = shardOf(process.env['FALSE_ALARM_SHARD'] ?? '1/1');
      const started = performance.now();
      const failures: string[] = [];
      let made = 0;
      for (let audit = index - 1; audit < audits; audit += count) {
        const { failure, isMade } = auditOne(audit, 0);
        if (isMade) made++;
        if (failure !== null) {
          failures.push(failure);
          console.log(failure);
        }
      }
      const seconds = ((performance.now() - started) / 1000).toFixed(0);
      console.log(
        `false alarms, shard ${index}/${count}: ${failures.length} of ${made} audits failed, ${seconds} s`,
      );
      expect(failures).toEqual([]);
    },
    24 * 3600 * 1000,
  );
});

describe.runIf(audits === 0)('correct kernels, drawn by TEST_SEED', () => {
  inTurn('raise no alarm', () => {
    for (let index = 0; index < scaled(3); index++)
      expect(auditOne(index, testSeed).failure).toBeNull();
  });
});
