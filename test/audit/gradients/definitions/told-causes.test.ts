import { describe, expect, it } from 'vitest';
import { describePlace } from '../../../../src/audit/rows/index.js';
import { scopesOf } from '../../../../src/audit/gradients/diagnosis/scope.js';
import type { Replayed } from '../../../../src/audit/gradients/diagnosis/replay/replay.js';
import { backwardKernel, drawDout } from '../../../kernels/gradients/index.js';
import { seededRandom } from '../../../kernels/features/index.js';
import { sampled } from '../../../setup/effort.js';
import { plantedBugs, type PlantedBug } from '../planted/index.js';
import { acceptedOf, familiesOf, replayedOf } from './failed-case.js';
import { smallProblems } from './small-problems.js';

/** Which family tells a cause, by what its name begins with. */
const families: Readonly<Record<string, keyof typeof familiesOf>> = {
  'delta-': 'delta',
  'lse-': 'lse',
  'mask-': 'mask',
  'alibi-': 'weight',
  'bias-': 'weight',
  'dropout-': 'weight',
  'score-': 'weight',
  'softcap-': 'weight',
  'sink-': 'sink',
  'dout-': 'operand',
  'keys-': 'operand',
  'values-': 'operand',
  'queries-': 'operand',
  'inputs-layout': 'view',
  'kv-head-': 'operand',
  'statistics-': 'statistics',
  'scale-': 'factor',
  'log2e-': 'factor',
  'group-mean': 'factor',
  factor: 'factor',
  sign: 'factor',
  'group-': 'group',
  'heads-of-another-group': 'group',
  'batches-': 'moved',
  'gradient-': 'moved',
  'heads-': 'moved',
  'rows-moved': 'moved',
  'wrong-stride': 'stored',
  'accumulator-': 'factor',
};

const familyOf = (cause: string) =>
  Object.entries(families)
    .filter(([name]) => cause.startsWith(name))
    .sort(([a], [b]) => b.length - a.length)
    .at(0)?.[1];

/** What is said of causes without a name beside those that have one. */
const nameless = ['delta-wrong', 'lse-wrong', 'statistics-wrong', 'factor'];

/** The causes that a family tells: of everything, else of some heads, sequences or rows. */
function told(of: Replayed, family: keyof typeof familiesOf) {
  for (const scope of [null, ...scopesOf(of.failed)]) {
    const found = acceptedOf({ ...of, scope }, familiesOf[family]).filter(
      ({ id }) => !nameless.includes(id),
    );
    if (found.length > 0) return found;
  }
  return [];
}

/** Bugs of tiles, of tails, of pages and of single heads, which a little problem does not have, or not see. */
const notInLittle: ReadonlySet<string> = new Set([
  'D of 64 rows before',
  'stale D in 20 rows',
  'no D in the last tile',
  'no D in one head',
  'the LSE of the other batch entry',
  'zeros for LSE and D of a tile',
  'causal left out in the last tile of rows',
  'a tile of keys not visited by a tile of rows',
  'the last keys unseen',
  'the usual scale in P',
  'the scale twice in P',
  'dV 1 % large',
  'dQ 2 % small in one head',
  'no scale in dQ of one sequence',
  'dO of the other batch entry',
  'K of the other batch entry',
  'two pages exchanged',
  'pages of V exchanged',
  'heads of dK in another order',
  'halves of the columns of dK exchanged',
  'the tail of dQ unwritten',
  'the last 32 rows of one head of dK unwritten',
  'dQ of one sequence unwritten',
  'half of the columns of dV unwritten',
  'a column of dV with the other sign',
  'a tile of keys missing in dQ',
  'a tile of keys twice in dQ of one head',
  'a tile of queries missing in dK and dV',
  'a tile of queries missing in dK and dV of one head',
  'a tile of queries twice in dV',
]);

/** What the family of a bug's causes says of it, and where. */
function toldOf({ on = 'plain', change, causes }: PlantedBug): readonly string[] {
  const problem = smallProblems[on](seededRandom(1));
  const dout = drawDout(seededRandom(7), problem);
  const of = replayedOf(problem, { dout, ...backwardKernel({ change })(problem, dout) });
  const family = familyOf(causes[0]);
  if (of === null || family === undefined) return [];
  return told(of, family).map(({ id, place }) => `${id}: ${describePlace(place)}`);
}

const bugs = Object.entries(plantedBugs).filter(([name]) => !notInLittle.has(name));

/** The first bug of each cause, of which a run tries some: each takes a seventh of a second. */
const firsts = bugs.filter(
  ([, { causes }], i) => bugs.findIndex(([, other]) => other.causes[0] === causes[0]) === i,
);

describe('a family of causes tells its own, where it is, and no other', () => {
  it.each(sampled(firsts, 22))('%s', (_, bug) => {
    const wanted = bug.causes.map((id) => `${id}: ${bug.place ?? 'everywhere'}`);
    const found = toldOf(bug);
    expect(found).not.toEqual([]);
    expect(found.filter((one) => !wanted.includes(one))).toEqual([]);
  });
});
