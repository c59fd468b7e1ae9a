import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { attentionProblem } from '../../properties/index.js';
import type { ScoreLimit } from '../../properties/laws/kernel-under-test.js';
import { isWithinScoreLimit } from '../../properties/laws/promised-problem.js';
import { randomValues, type RandomValues } from '../../properties/problems/values.js';
import { judgeOutputs, premisePresets } from '../../src/audit/index.js';
import { formats, round } from '../../src/formats/index.js';
import { problemShape, type Problem } from '../../src/problem/index.js';
import { fromEnvironment, scaled, testSeed } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { runPlainKernel, toFormat, type PlainArithmetic } from './declared-kernel.js';

const inTurn = turns(import.meta.url);

/**
 * Audits of kernels that declare `eager` and are correct: over all regimes, with scores written raw, scaled or both, in
 * base 2 or e, up to where they overflow their format, and P rounded before or after the division; also kernels that write none. FALSE_ALARM_AUDITS and FALSE_ALARM_SHARD=3/16 as
 * in the campaign of any correct kernel.
 */
const audits = fromEnvironment('FALSE_ALARM_AUDITS', 0);
const [index, count] = (process.env['FALSE_ALARM_SHARD'] ?? '1/1').split('/').map(Number);

const { premises } = premisePresets['eager'];

const pick = <T>(list: readonly T[], random: RandomValues): T =>
  list[random.integer(0, list.length - 1)];

/** A problem of any regime, of few distinct numbers in one of five. */
function drawProblem(random: RandomValues): Problem {
  const problems = attentionProblem({
    formats: [pick(['bf16', 'fp16'] as const, random)],
    batch: { max: 1 },
    kvHeads: { max: 2 },
    groupSize: { max: 2 },
    queries: { min: 20, max: 200 },
    keys: { min: 20, max: 200 },
    qkDim: { min: 8, max: 48 },
    vDim: { min: 8, max: 48 },
    window: false,
    softcap: false,
    specialValues: [],
    emptyRows: false,
  });
  const [problem] = fc.sample(problems, { seed: random.integer(0, 2 ** 31 - 1), numRuns: 1 });
  return problem;
}

/** What kernels multiply scores by where they write them; null where they write none. */
const scoreFactors: Readonly<Record<string, number | null>> = {
  'all scores': 1,
  'no scores': null,
  'scores in base 2': Math.LOG2E,
  'scores times 3': 3,
};

/** The suite's own limit: beyond it sums in fp32 leave their range. */
const anyScores = { raw: 2 ** 100, scaled: 2 ** 20 };

/** A correct kernel that may declare `eager`. */
interface EagerKernel {
  readonly name: string;
  readonly changes: Partial<PlainArithmetic>;
  /** The scores that it promises to take. */
  readonly limit: ScoreLimit;
}

function drawKernel({ q }: Problem, random: RandomValues): EagerKernel {
  const dividesFirst = random.uniform() < 0.7;
  const name = pick(Object.keys(scoreFactors), random);
  const weight = random.uniform() < 0.5 ? toFormat(q.format) : toFormat('fp32');
  const factor = scoreFactors[name];
  return {
    name: `${name}, ${dividesFirst ? 'divided first' : 'divided last'}`,
    changes: {
      score: (x) => (factor === null ? x : round(formats[q.format], x * factor) / factor),
      dividesFirst,
      ...(dividesFirst ? {} : { weight }),
    },
    // A score may overflow where it is beyond its format itself; what another number in its place does is not declared.
    limit: factor === null || factor === 1 ? anyScores : { raw: 2 ** 15 / factor, scaled: 2 ** 12 },
  };
}

/** One audit: what failed; null where nothing did. */
function auditOne(audit: number, seed: number): string | null {
  const random = randomValues(Math.imul(audit + 1, 0x9e3779b1) ^ seed);
  const problem = drawProblem(random);
  const kernel = drawKernel(problem, random);
  if (!isWithinScoreLimit(problem, kernel.limit)) return null;
  const { verdict } = judgeOutputs(
    problem,
    runPlainKernel(problem, () => kernel.changes),
    {
      premises,
      diagnose: false,
    },
  );
  if (verdict.findings.length === 0) return null;
  const { heads, queries, keys, qkDim } = problemShape(problem);
  const found = verdict.findings.map(({ test, statement }) => `${test}: ${statement}`);
  return `audit ${audit}, ${problem.q.format}, ${heads} × ${queries} × ${keys} × ${qkDim}, ${kernel.name}: ${found.join('; ')}`;
}

describe.runIf(audits > 0)('a campaign of correct kernels that declare eager', () => {
  it(
    'raises no alarm',
    () => {
      const failures: string[] = [];
      for (let audit = index - 1; audit < audits; audit += count) {
        const failure = auditOne(audit, 0);
        if (failure === null) continue;
        failures.push(failure);
        console.log(failure);
      }
      console.log(
        `declared eager, shard ${index}/${count} of ${audits}: ${failures.length} failed`,
      );
      expect(failures).toEqual([]);
    },
    24 * 3600 * 1000,
  );
});

describe.runIf(audits === 0)('correct kernels that declare eager, drawn by TEST_SEED', () => {
  inTurn('raise no alarm', () => {
    for (let audit = 0; audit < scaled(6); audit++) expect(auditOne(audit, testSeed)).toBeNull();
  });
});
