import { afterAll, describe, expect, it } from 'vitest';
import { attentionOracle } from '../../oracles/index.js';
import { checkKernel } from '../../properties/index.js';
import { auditAccuracy, judgeOutputs, type KernelOutputs } from '../../src/audit/index.js';
import { describePlace } from '../../src/audit/rows/index.js';
import type { Problem } from '../../src/problem/index.js';
import { fromEnvironment, sampled, testSeed } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { expectBelowRounding } from './damage-checks.js';
import { hostMistakes, runSoundKernel } from './host-mistakes.js';
import { plantedBugs, plantedPlaces, plantedProblem, type PlantedBug } from './planted-bugs.js';
import { runPlantedKernel } from './planted-kernel.js';

const inTurn = turns(import.meta.url);

/**
 * PLANTED=all audits every bug and mistake and prints what became of each, with a table of counts; PLANTED=check tries
 * every bug with `checkKernel` (PLANTED_RUNS problems a law, default 30). Else some that TEST_SEED draws are audited.
 */
const wanted = process.env['PLANTED'];
const everything = wanted === 'all';

/** What the table says of a bug: it moves nothing beyond rounding, is not caught, caught without a cause, and so on. */
type Outcome = 'below rounding' | 'missed' | 'unexplained' | 'named' | 'WRONG';

const outcomes = new Map<string, { family: string; outcome: Outcome; text: string }>();

/** A bug of the corpus: a kernel that is wrong, or one that is right and was given the wrong problem. */
interface Planted {
  readonly family: string;
  readonly problem: () => Problem;
  readonly outputs: (problem: Problem) => KernelOutputs;
  /** What the same kernel gives without the bug. */
  readonly sound: (problem: Problem) => KernelOutputs;
  readonly causes: readonly string[];
  readonly place: string;
}

const bugs = Object.entries(plantedBugs);

const corpus: readonly (readonly [name: string, planted: Planted])[] = [
  ...bugs.map(([name, { family, on = 'plain', kernel, causes }]): [string, Planted] => {
    const { block = 64, order = 'last to first', splits = 1, offset = 0 } = kernel;
    return [
      name,
      {
        family,
        problem: () => plantedProblem(on),
        outputs: (problem) => runPlantedKernel(problem, kernel),
        sound: (problem) => runPlantedKernel(problem, { block, order, splits, offset }),
        causes,
        place: plantedPlaces[name] ?? 'everywhere',
      },
    ];
  }),
  ...Object.entries(hostMistakes).map(
    ([name, { on, place = 'everywhere', ...mistake }]): [string, Planted] => [
      name,
      { ...mistake, problem: on, place, sound: runSoundKernel },
    ],
  ),
];

/** A problem's exact attention as an audit wants it. */
const referenceOf = (problem: Problem) =>
  attentionOracle(problem, {
    accuracy: auditAccuracy(problem.q.format === 'fp16' ? 'fp16' : 'bf16'),
  });

afterAll(() => {
  if (outcomes.size === 0 || !everything) return;
  for (const [bug, { outcome, text }] of outcomes) console.log([outcome, bug, text].join(' | '));
  const all = [...outcomes.values()];
  const row = (of: typeof all) => {
    const count = (outcome: Outcome) => of.filter((one) => one.outcome === outcome).length;
    const beyond = of.length - count('below rounding');
    return [of.length, beyond, beyond - count('missed'), count('named'), count('WRONG')];
  };
  console.log('family | bugs | beyond rounding | fail | named with their place | wrongly');
  for (const family of new Set(all.map((one) => one.family)))
    console.log([family, ...row(all.filter((one) => one.family === family))].join(' | '));
  console.log(['all', ...row(all)].join(' | '));
});

const tried = everything ? corpus : wanted === undefined ? sampled(corpus, 3) : [];

describe.runIf(tried.length > 0)('a planted bug is named rightly with its place, or not', () => {
  inTurn.each(tried)('%s', (name, planted) => {
    const { family, causes, sound } = planted;
    const problem = planted.problem();
    const reference = referenceOf(problem);
    const outputs = planted.outputs(problem);
    const { verdict } = judgeOutputs(problem, outputs, { reference });
    const { diagnosis } = verdict;
    if (verdict.pass) {
      // What passes moves nothing beyond what a correct kernel's rounding may.
      const given = { problem, reference: () => reference };
      expectBelowRounding({ ...given, outputs: sound(problem) }, { ...given, outputs });
      outcomes.set(name, { family, outcome: 'below rounding', text: verdict.sentence });
      return;
    }
    const found = diagnosis?.place ?? null;
    const place = found === null ? 'nowhere' : describePlace(found);
    const named = diagnosis === null ? [] : [diagnosis.id, ...diagnosis.equivalents];
    const isUnexplained = diagnosis?.id === 'unexplained';
    const isRight = named.some((id) => causes.includes(id)) && place === planted.place;
    const outcome = isUnexplained ? 'unexplained' : isRight ? 'named' : 'WRONG';
    outcomes.set(name, { family, outcome, text: `${verdict.sentence} @ ${place}` });
    if (isUnexplained) return;
    expect(named.filter((id) => causes.includes(id))).not.toEqual([]);
    expect(place).toBe(planted.place);
  });

  inTurn('the kernel without a bug passes', () => {
    const problem = plantedProblem('plain');
    const reference = referenceOf(problem);
    const { verdict } = judgeOutputs(problem, runPlantedKernel(problem), { reference });
    expect(verdict.findings).toEqual([]);
  });

  const problems = new Map(Object.values(hostMistakes).map(({ on }) => [on, on]));
  inTurn.each([...problems.keys()])('a sound kernel passes on the problem of mistakes %#', (on) => {
    const problem = on();
    const reference = referenceOf(problem);
    const { verdict } = judgeOutputs(problem, runSoundKernel(problem), { reference });
    expect(verdict.findings).toEqual([]);
  });
});

/** Whether `check` finds a kernel wrong, with the promises that it would be given. */
async function isCaughtByCheck({ kernel, on }: PlantedBug): Promise<boolean> {
  const { pass } = await checkKernel(
    (problem) => runPlantedKernel(problem, kernel),
    { softcap: on === 'softcap' },
    { runs: fromEnvironment('PLANTED_RUNS', 30), seed: testSeed, bail: true, shrinkSeconds: 0.01 },
  );
  return !pass;
}

describe.runIf(wanted === 'check')('check', () => {
  const caught = new Map<string, boolean>();
  afterAll(() => {
    const missed = [...caught].filter(([, isCaught]) => !isCaught).map(([name]) => name);
    console.log(
      `check catches ${caught.size - missed.length} of ${caught.size} bugs; not: ${missed.join(', ')}`,
    );
  });

  it('passes the kernel without a bug', { timeout: 3_600_000 }, async () => {
    expect(await isCaughtByCheck({ family: '', kernel: {}, causes: [] })).toBe(false);
  });

  it.each(bugs)('%s', { timeout: 3_600_000 }, async (name, bug) => {
    caught.set(name, await isCaughtByCheck(bug));
  });
});
