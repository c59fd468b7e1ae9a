import * as fc from 'fast-check';
import { expect } from 'vitest';
import type { Fa4Configuration } from '../../../kernels/index.js';
import { describeProblem } from '../../../properties/problems/describe-problem.js';
import { attentionProblem } from '../../../properties/problems/problem-arbitrary.js';
import type { ProblemConstraints } from '../../../properties/problems/problem-constraints.js';
import { scoreProblem, scoreRegimeNames } from '../../../properties/problems/score-problem.js';
import type { FormatName } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import type { JudgedKernel } from './judged-kernels.js';
import { boundViolations } from './violations.js';
import { fromEnvironment, scaled, testSeed } from '../../setup/effort.js';

/** Problems of all soundness tests together. */
const boundProblems = fromEnvironment('BOUND_PROBLEMS', scaled(70));

const fa4Configurations: fc.Arbitrary<Partial<Fa4Configuration>> = fc.record({
  architecture: fc.constantFrom('sm_90', 'sm_100', 'sm_103'),
  rescaleThreshold: fc.constantFrom(0, 2, 4, 8, 8, 16, Infinity),
  maxOffset: fc.constantFrom(0, 0, 8, -3),
  lseFused: fc.boolean(),
  blockKeys: fc.constantFrom(128, 128, 64, 96, 32, 256),
  exp2: fc.record({
    frequency: fc.constantFrom(0, 1, 10, 16, 32),
    reserve: fc.constantFrom(0, 1, 4),
    startFragment: fc.constantFrom(0, 1),
    degree: fc.constantFrom(1, 2, 3, 3, 4, 5),
  }),
});

/** Any configuration that FlashAttention-4's forward lets one choose, or its own choice. */
export const configurations: fc.Arbitrary<Partial<Fa4Configuration>> = fc.oneof(
  { arbitrary: fa4Configurations, weight: 4 },
  { arbitrary: fc.constant({}), weight: 1 },
);

/** Problems whose scores are laid out over the keys: sinks, slopes, steps beside the threshold. */
function scoreProblems(format: FormatName): fc.Arbitrary<Problem> {
  return fc
    .record({
      name: fc.constantFrom(...scoreRegimeNames),
      queries: fc.integer({ min: 1, max: 70 }),
      keys: fc.integer({ min: 1, max: 520 }),
      dim: fc.integer({ min: 10, max: 40 }),
      seed: fc.nat({ max: 2 ** 31 - 1 }),
      step: fc.constantFrom(1, 2, 4, 8, 16),
      causal: fc.boolean(),
    })
    .map(({ name, causal, ...request }) => ({
      ...scoreProblem(name, { ...request, format }),
      causal,
    }));
}

/** Problems of every kind in a format. */
export function boundedProblems(
  format: FormatName,
  constraints: ProblemConstraints = {},
): fc.Arbitrary<Problem> {
  const any = attentionProblem({
    formats: [format],
    groupSize: { max: 2 },
    queries: { max: 140 },
    keys: { max: 400 },
    qkDim: { max: 48 },
    specialValues: ['nan', 'infinity'],
    ...constraints,
  });
  return fc.oneof({ arbitrary: any, weight: 4 }, { arbitrary: scoreProblems(format), weight: 1 });
}

/**
 * Checks the bounds on a share of `boundProblems` random problems. A failure prints the shrunken problem,
 * what is wrong with it, and how to get it again.
 *
 * @param file the test's name without its ending, for the command that repeats it
 * @param choose the kernel on a problem, and how to describe it
 */
export function expectSound<Choice>(
  file: string,
  share: number,
  problems: fc.Arbitrary<Problem>,
  choices: fc.Arbitrary<Choice>,
  choose: (problem: Problem, choice: Choice) => JudgedKernel,
): void {
  const numRuns = Math.ceil(boundProblems * share);
  let checked = 0;
  fc.assert(
    fc.property(problems, choices, (problem, choice) => {
      const found = boundViolations(problem, choose(problem, choice));
      checked += found.checked;
      if (found.violations.length > 0)
        throw new Error(
          [
            describeProblem(problem),
            `as ${fc.stringify(choice)}`,
            ...found.violations,
            `again: TEST_SEED=${testSeed} BOUND_PROBLEMS=${boundProblems} npx vitest run test/audit/bounds/${file}`,
          ].join('\n'),
        );
    }),
    { numRuns, seed: testSeed },
  );
  // Most bounds must say something, or nothing was tested: 500 numbers a problem are easily there.
  if (numRuns > 20) expect(checked).toBeGreaterThan(500 * numRuns);
}
