import { afterAll, describe, expect, it } from 'vitest';
import { attentionOracle, type AttentionReference } from '../../oracles/index.js';
import { auditAccuracy, judgeOutputs } from '../../src/audit/index.js';
import type { Problem } from '../../src/problem.js';
import { sampled } from '../setup/effort.js';
import { plantedBugs, plantedProblem, type PlantedProblem } from './planted-bugs.js';
import { runPlantedKernel } from './planted-kernel.js';

/** Every bug with PLANTED=all, which prints what became of each; else some that TEST_SEED draws. */
const everything = process.env['PLANTED'] === 'all';

interface Outcome {
  readonly moves: boolean;
  readonly caught: boolean;
  readonly cause: string;
  readonly right: boolean;
  readonly seconds: number;
  readonly sentence: string;
}

const outcomes = new Map<string, Outcome>();

interface Drawn {
  readonly problem: Problem;
  readonly reference: AttentionReference;
}

const drawn = new Map<PlantedProblem, Drawn>();

function drawnProblem(name: PlantedProblem): Drawn {
  const known = drawn.get(name);
  if (known !== undefined) return known;
  const problem = plantedProblem(name);
  const accuracy = auditAccuracy(problem.q.format);
  const made = { problem, reference: attentionOracle(problem, { accuracy }) };
  drawn.set(name, made);
  return made;
}

afterAll(() => {
  if (!everything) return;
  const all = [...outcomes.values()];
  for (const [bug, { moves, caught, cause, right, seconds, sentence }] of outcomes) {
    const found = !caught
      ? moves
        ? 'missed'
        : 'still'
      : right
        ? 'named'
        : cause === 'unexplained'
          ? '-'
          : 'WRONG';
    console.log([found, bug, cause, seconds.toFixed(1), sentence].join(' | '));
  }
  const count = (of: (outcome: Outcome) => boolean) => all.filter(of).length;
  console.log(
    `${all.length} bugs, ${count(({ moves }) => moves)} change the output or the LSE, ${count(({ caught }) => caught)} caught, ${count(({ right }) => right)} named, ${count(({ caught, right, cause }) => caught && !right && cause !== 'unexplained')} named wrongly`,
  );
});

const bugs = Object.entries(plantedBugs);
const tried = everything ? bugs : sampled(bugs, 4);

describe('a planted bug is named rightly, or not at all', () => {
  it.each(tried)('%s', (name, { on = 'plain', kernel, causes }) => {
    const { problem, reference } = drawnProblem(on);
    const outputs = runPlantedKernel(problem, kernel);
    const start = performance.now();
    const { verdict } = judgeOutputs(problem, outputs, { reference });
    const seconds = (performance.now() - start) / 1000;
    const { diagnosis } = verdict;
    const named = diagnosis === null ? [] : [diagnosis.id, ...diagnosis.equivalents];
    const right = named.some((id) => causes.includes(id));
    if (everything) {
      const { block, order, splits, offset } = kernel;
      const chosen = Object.fromEntries(
        Object.entries({ block, order, splits, offset }).filter(([, value]) => value !== undefined),
      );
      const sound = runPlantedKernel(problem, chosen);
      const differs = (a: ArrayLike<number>, b: ArrayLike<number>) =>
        Array.from(a).some((x, i) => x !== b[i]);
      const moves =
        differs(sound.out.data as ArrayLike<number>, outputs.out.data as ArrayLike<number>) ||
        differs(sound.lse!.data as ArrayLike<number>, outputs.lse!.data as ArrayLike<number>);
      const cause = named.join('+');
      outcomes.set(name, {
        moves,
        caught: !verdict.pass,
        cause,
        right,
        seconds,
        sentence: verdict.sentence,
      });
    }
    if (diagnosis !== null && diagnosis.id !== 'unexplained')
      expect(right, verdict.sentence).toBe(true);
  });
});
