import { afterAll, describe, expect, it } from 'vitest';
import { attentionOracle, type AttentionReference } from '../../oracles/index.js';
import { checkKernel } from '../../properties/index.js';
import { auditAccuracy, judgeOutputs, type KernelOutputs } from '../../src/audit/index.js';
import { describePlace } from '../../src/audit/rows/index.js';
import { formats, patternsOf } from '../../src/formats/index.js';
import type { Problem } from '../../src/problem/index.js';
import { fromEnvironment, sampled, testSeed } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import {
  plantedBugs,
  plantedProblem,
  type PlantedBug,
  type PlantedProblem,
} from './planted-bugs.js';
import { runPlantedKernel } from './planted-kernel.js';

const inTurn = turns(import.meta.url);

/**
 * PLANTED=all audits every bug, PLANTED=check tries every bug with `checkKernel` (PLANTED_RUNS problems a law,
 * default 30); both print what became of each. Else some that TEST_SEED draws are audited.
 */
const wanted = process.env['PLANTED'];
const everything = wanted === 'all';

/** What the table says of a bug: nothing changed, not caught, caught without a cause, and so on. */
type Finding = 'no change' | 'missed' | 'unexplained' | 'named' | 'WRONG';

const findings = new Map<string, readonly [finding: Finding, sentence: string]>();

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

/** The bits of output and LSE. */
function bitsOf({ out, lse }: KernelOutputs): number[] {
  return [out, lse!].flatMap(({ data, format }) =>
    Array.from(patternsOf(data, formats[format]), Number),
  );
}

/** Whether a bug moves anything, against the same kernel without it. */
function moves(problem: Problem, { kernel }: PlantedBug, outputs: KernelOutputs): boolean {
  const { block = 64, order = 'last to first', splits = 1, offset = 0 } = kernel;
  const sound = bitsOf(runPlantedKernel(problem, { block, order, splits, offset }));
  return bitsOf(outputs).some((bits, i) => bits !== sound[i]);
}

afterAll(() => {
  if (findings.size === 0 || !everything) return;
  for (const [bug, [finding, sentence]] of findings)
    console.log([finding, bug, sentence].join(' | '));
  const count = (of: Finding) =>
    [...findings.values()].filter(([finding]) => finding === of).length;
  const moving = findings.size - count('no change');
  const caught = moving - count('missed');
  console.log(
    `${findings.size} bugs, ${moving} move the output or the LSE, ${caught} caught, ${count('named')} of them with the right cause, ${count('WRONG')} with a wrong one`,
  );
});

const bugs = Object.entries(plantedBugs);
const tried = everything ? bugs : wanted === undefined ? sampled(bugs, 1) : [];

describe.runIf(tried.length > 0)('a planted bug is named rightly, or not at all', () => {
  inTurn.each(tried)('%s', (name, bug) => {
    const { problem, reference } = drawnProblem(bug.on ?? 'plain');
    const outputs = runPlantedKernel(problem, bug.kernel);
    const { verdict } = judgeOutputs(problem, outputs, { reference });
    const { diagnosis } = verdict;
    const named = diagnosis === null ? [] : [diagnosis.id, ...diagnosis.equivalents];
    const right = named.some((id) => bug.causes.includes(id));
    const finding = (): Finding => {
      if (!verdict.pass)
        return right ? 'named' : diagnosis!.id === 'unexplained' ? 'unexplained' : 'WRONG';
      return moves(problem, bug, outputs) ? 'missed' : 'no change';
    };
    const found = diagnosis?.place ?? null;
    const place = found === null ? 'nowhere' : describePlace(found);
    if (everything) findings.set(name, [finding(), `${verdict.sentence} @ ${place}`]);
    if (diagnosis !== null && diagnosis.id !== 'unexplained')
      expect(right, verdict.sentence).toBe(true);
  });

  inTurn('the kernel without a bug passes', () => {
    const { problem, reference } = drawnProblem('plain');
    const { verdict } = judgeOutputs(problem, runPlantedKernel(problem), { reference });
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
