import { afterAll, describe, expect } from 'vitest';
import { attentionOracle, type AttentionReference } from '../../../../oracles/index.js';
import { auditGradients } from '../../../../src/audit/index.js';
import { describePlace, type Place } from '../../../../src/audit/rows/index.js';
import { formats, patternsOf, type Tensor } from '../../../../src/formats/index.js';
import type { Problem } from '../../../../src/problem/index.js';
import { seededRandom } from '../../../kernels/features/index.js';
import {
  backwardKernel,
  drawDout,
  gradientsOf,
  type BackwardOutputs,
} from '../../../kernels/gradients/index.js';
import { sampled } from '../../../setup/effort.js';
import { turns } from '../../../setup/turns.js';
import {
  plantedBugs,
  plantedProblem,
  plantedProblems,
  type PlantedBug,
  type PlantedProblem,
} from './index.js';

const inTurn = turns(import.meta.url);

/** PLANTED_GRADIENTS=all tries every bug, and prints what becomes of each with the counts; a text those whose names have it. */
const wanted = process.env['PLANTED_GRADIENTS'];

/** What becomes of a bug. */
type Finding = 'named' | 'unexplained' | 'WRONG NAME' | 'WRONG PLACE' | 'missed' | 'no change';

interface Drawn {
  readonly problem: Problem;
  readonly dout: Tensor;
  readonly reference: AttentionReference;
  readonly right: BackwardOutputs;
}

const drawn = new Map<PlantedProblem, Drawn>();

function draw(name: PlantedProblem): Drawn {
  const known = drawn.get(name);
  if (known !== undefined) return known;
  const problem = plantedProblem(name);
  const dout = drawDout(seededRandom(7), problem);
  const made = {
    problem,
    dout,
    reference: attentionOracle(problem),
    right: backwardKernel()(problem, dout),
  };
  drawn.set(name, made);
  return made;
}

const isSame = (one: Tensor, other: Tensor) => {
  const bits = ({ data, format }: Tensor) => patternsOf(data, formats[format]);
  const wantedBits = bits(other);
  return bits(one).every((x, i) => x === wantedBits[i]);
};

/** A place in words, without counts of rows where these are listed. */
const placeText = (place: Place) =>
  describePlace(place.queries === null ? place : { ...place, rows: null });

const findings = new Map<string, readonly [Finding, string]>();

/** What becomes of a bug, and what is said of it. */
function findingOf({ on = 'plain', change, causes, place = 'everywhere' }: PlantedBug) {
  const { problem, dout, reference, right } = draw(on);
  const given = backwardKernel({ change })(problem, dout);
  const { verdict } = auditGradients(problem, { dout, ...given }, { reference });
  const { diagnosis } = verdict;
  const said = diagnosis === null ? '' : placeText(diagnosis.place);
  const finding = (): Finding => {
    if (diagnosis === null)
      return gradientsOf.every((of) => isSame(given[of], right[of])) ? 'no change' : 'missed';
    if (diagnosis.id === 'unexplained') return 'unexplained';
    const names = [diagnosis.id, ...diagnosis.equivalents];
    if (!names.some((id) => causes.includes(id))) return 'WRONG NAME';
    return said === place ? 'named' : 'WRONG PLACE';
  };
  return { finding: finding(), sentence: `${verdict.sentence} [${said}]` };
}

afterAll(() => {
  if (findings.size === 0 || wanted === undefined) return;
  for (const [bug, [finding, sentence]] of findings)
    console.log([finding, bug, sentence].join(' | '));
  const count = (of: Finding) => [...findings.values()].filter(([one]) => one === of).length;
  const moving = findings.size - count('no change');
  console.log(
    `${findings.size} bugs, ${moving} move a gradient, ${moving - count('missed')} caught, ${count('named')} of them with the right cause and place, ${count('WRONG NAME')} with a wrong name, ${count('WRONG PLACE')} with a wrong place`,
  );
});

const bugs = Object.entries(plantedBugs);
const tried =
  wanted === undefined
    ? sampled(bugs, 4)
    : bugs.filter(([name]) => wanted === 'all' || name.includes(wanted));

describe('a bug of a backward pass is named rightly, in its place, or not at all', () => {
  inTurn.each(tried)('%s', (name, bug) => {
    const { finding, sentence } = findingOf(bug);
    if (wanted !== undefined) findings.set(name, [finding, sentence]);
    expect(['named', 'unexplained', 'no change', 'missed'], sentence).toContain(finding);
  });
});

describe('the kernel without a bug passes', () => {
  inTurn.each(sampled(plantedProblems, 2))('%s', (name) => {
    const { problem, dout, reference, right } = draw(name);
    const { verdict } = auditGradients(problem, { dout, ...right }, { reference });
    expect(verdict.findings).toEqual([]);
  });
});
