import * as fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { Accuracy } from '../../../oracles/index.js';
import { attentionProblem } from '../../../properties/index.js';
import { cancellingDots } from './cancelling-dots.js';
import { loadMpfr } from '../mpfr.js';
import { arbitrarySolver, everySolver, oracleSolver, type Solver } from './oracle-levels.js';
import type { FormatName } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { scoredKeys, singleHead } from '../../setup/problems.js';
import { turns } from '../../setup/turns.js';
import { assertWithinRadii, RadiusUse } from './radius-check.js';
import { withReference } from './reference-attention.js';
import { scaled, testSeed } from '../../setup/effort.js';

const inTurn = turns(import.meta.url);

const mpfr = await loadMpfr();

const loose: Accuracy = { outputFormat: 'fp32', ulpFraction: 1, magnitudeFraction: 1 };

const solvers = {
  ...everySolver,
  'loose accuracy': oracleSolver(loose),
  'arbitrary level, 40 bits': arbitrarySolver(40),
} as const satisfies Readonly<Record<string, Solver>>;

const cancelling = (format: FormatName, size: number): Problem =>
  singleHead(format, {
    q: [[size, size, 1]],
    k: [
      [size, -size, 1],
      [-size, size, 2],
      [0, 0, 1],
    ],
    v: [[1], [2], [3]],
  });

/** Problems that need a level: the accuracy, the level, and what cancels. */
const levelProblems: readonly (readonly [keyof typeof solvers, string, Problem])[] = [
  ['default accuracy', 'fp64', scoredKeys('fp32', [0, 1, 2], [1, 2, 3])],
  ['default accuracy', 'double-double', scoredKeys('fp64', [0, 0], [1, -(1 - 2 ** -40)])],
  ['default accuracy', 'arbitrary', scoredKeys('fp32', [3, 3, 1, 1], [5, -5, 7, -7])],
  ['audit accuracy', 'fp64', scoredKeys('fp32', [3, 3, 1, 1], [5, -5, 7, -7])],
  ['audit accuracy', 'double-double', cancelling('fp64', 2 ** 22 / 3)],
  ['audit accuracy', 'double-double', cancelling('fp64', 2 ** 45 / 3)],
  ['audit accuracy', 'arbitrary', scoredKeys('fp64', [0, 1], [1, 2], { softcap: 2 ** 62 })],
  ['loose accuracy', 'fp64', scoredKeys('fp32', [3, 3, 1, 1], [5, -5, 7, -7])],
];

const uses = Object.fromEntries(Object.keys(solvers).map((name) => [name, new RadiusUse()]));
const checked: number[] = [];

function crossCheck(problem: Parameters<Solver>[0]): void {
  checked.push(problem.q.shape.length);
  withReference(mpfr, problem, (reference) => {
    for (const [name, solve] of Object.entries(solvers))
      assertWithinRadii(problem, reference, solve, uses[name]);
  });
}

const smallProblem = attentionProblem({
  batch: { max: 1 },
  queries: { max: 5 },
  keys: { max: 9 },
  qkDim: { max: 6 },
  vDim: { max: 4 },
});

describe('the oracle against MPFR', () => {
  inTurn('is within its radii on small problems of every kind', { timeout: 3_600_000 }, () => {
    fc.assert(fc.property(smallProblem, crossCheck), { seed: testSeed, numRuns: scaled(100) });
  });

  it('is within its radii across tiles of 64 keys', { timeout: 3_600_000 }, () => {
    const arbitrary = attentionProblem({
      batch: { max: 1 },
      kvHeads: { max: 1 },
      groupSize: { max: 1 },
      queries: { max: 3 },
      keys: { min: 60, max: 200 },
      qkDim: { max: 3 },
      vDim: { max: 2 },
    });
    const numRuns = scaled(10);
    fc.assert(fc.property(arbitrary, crossCheck), { seed: testSeed, numRuns });
  });

  it('is within its radii across tiles of 64 queries', { timeout: 3_600_000 }, () => {
    const arbitrary = attentionProblem({
      batch: { max: 1 },
      queries: { min: 60, max: 130 },
      keys: { max: 5 },
      qkDim: { max: 3 },
      vDim: { max: 2 },
    });
    const numRuns = scaled(4);
    fc.assert(fc.property(arbitrary, crossCheck), { seed: testSeed, numRuns });
  });

  it('is within its radii where dot products cancel', { timeout: 3_600_000 }, () => {
    const numRuns = scaled(40);
    fc.assert(fc.property(cancellingDots, crossCheck), { seed: testSeed, numRuns });
  });

  it('is within its radii at every level', () => {
    for (const [name, level, problem] of levelProblems) {
      const use = new RadiusUse();
      withReference(mpfr, problem, (reference) =>
        assertWithinRadii(problem, reference, solvers[name], use),
      );
      expect(Object.keys(use.summary()), name).toContain(level);
    }
  });

  it('seldom leaves fp64 where the accuracy asked for is loose', () => {
    // How seldom depends on what is drawn: a fixed seed.
    const problems = fc.sample(smallProblem, { seed: 1, numRuns: 200 });
    const met = problems.flatMap(solvers['loose accuracy']).map(({ level }) => level);
    const solved = met.filter((level) => level !== 'empty');
    expect(solved.length).toBeGreaterThan(400);
    expect(solved.filter((level) => level === 'fp64').length).toBeGreaterThan(0.9 * solved.length);
  });

  it('notices an error of three radii', () => {
    const problem = scoredKeys('fp32', [0, 1, 2], [1, 2, 4]);
    const faulty: Solver = (given) =>
      oracleSolver()(given).map(({ result, level }) => ({
        level,
        result: { ...result, out: result.out.map((x, c) => x + 3 * result.outRadius[c]) },
      }));
    const faultyLse: Solver = (given) =>
      oracleSolver()(given).map(({ result, level }) => ({
        level,
        result: { ...result, lse: result.lse - 3 * result.lseRadius },
      }));
    withReference(mpfr, problem, (reference) => {
      const judge = (solve: Solver) => () =>
        assertWithinRadii(problem, reference, solve, new RadiusUse());
      expect(judge(oracleSolver())).not.toThrow();
      expect(judge(faulty)).toThrow(/^O\[0\]\[0\] = .* is off by/);
      expect(judge(faultyLse)).toThrow(/^LSE\[0\] = .* is off by/);
    });
  });

  afterAll(() => {
    console.info(`${checked.length} problems, largest and median |error| / radius by level:`);
    for (const [name, use] of Object.entries(uses)) {
      const levels = Object.entries(use.summary()).map(
        ([level, { elements, largest, median }]) =>
          `${level} ${largest.toFixed(3)} / ${median.toFixed(4)} of ${elements}`,
      );
      console.info(`  ${name}: ${levels.join('; ')}`);
    }
  });
});
