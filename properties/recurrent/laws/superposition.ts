import { recurrentFamilies } from '../../../src/problem/index.js';
import { NotApplicable } from '../../laws/index.js';
import {
  axesOf,
  axisSizes,
  givenInputs,
  placeOf,
  withoutInputs,
  withPlainSteps,
  withValues,
  type InputName,
  type Place,
  type PlainRecurrence,
} from '../problems/index.js';
import { numbersDiffer } from './compare-numbers.js';
import { ofFamilies } from './exact-laws.js';
import type { RecurrentLawOfKernels, RecurrentNumbers } from './law.js';

/** Tokens that write, at most about so many: what they add up to stays below 256, which bf16 has exactly. */
const writers = 16;

/** Key dimensions that are written to, by turns. */
const writtenKeys = 3;

/** A whole number from −2 to 2 that follows from a place. */
function wholeAt(place: Place, salt: number): number {
  const { token = -1, sequence = -1, valueHead = 0, keyDim = 0, valueDim = 0 } = place;
  const hash = [token, sequence, valueHead, keyDim, valueDim].reduce(
    (sum, at) => Math.imul(sum ^ (at + 2), 0x01000193),
    Math.imul(salt + 1, 0x9e3779b1),
  );
  return ((hash >>> 11) % 5) - 2;
}

/** Whether a token writes, and at which key dimension. */
function writeOf(plain: PlainRecurrence, token: number) {
  const spacing = Math.ceil(axisSizes(plain).token / writers);
  const turns = Math.min(writtenKeys, plain.keyDim);
  return { writes: token % spacing === 0, key: Math.floor(token / spacing) % turns };
}

/** The number of an input at a place; `salt` tells one v and state from another. */
function numberAt(plain: PlainRecurrence, name: InputName, place: Place, salt: number): number {
  const { token = 0, keyDim = 0 } = place;
  const { writes, key } = writeOf(plain, token);
  switch (name) {
    case 'q':
      return keyDim <= writtenKeys ? Math.sign(wholeAt(place, 7)) : 0;
    case 'k':
      return keyDim === key ? 1 : 0;
    case 'beta':
      return writes ? 1 : 0;
    case 'v':
      return writes ? wholeAt(place, salt) : 0;
    case 'initial_state':
      return wholeAt(place, salt);
    case 'dt':
      return 1;
    case 'D':
      return wholeAt(place, 13);
    default:
      return 0;
  }
}

/** The problem with whole numbers, of which no operation of a kernel rounds anything: keys of length 1, no decay; of mamba2 with Δ = 1 and no gate. */
function wholeProblem(given: PlainRecurrence, salts: readonly number[]): PlainRecurrence {
  const plain =
    given.steps === null
      ? { ...given, scale: 0.5 }
      : withoutInputs(
          withPlainSteps(given, () => 1),
          ['z'],
        );
  const sizes = axisSizes(plain);
  const values = givenInputs(plain).map(([name, { values: before }]) => {
    const axes = axesOf(name, plain.family);
    const [first, ...others] = name === 'v' || name === 'initial_state' ? salts : [0];
    return [
      name,
      before.map((_, i) => {
        const place = placeOf(i, axes, sizes);
        const at = (salt: number) => numberAt(plain, name, place, salt);
        return others.reduce((sum, salt) => sum + at(salt), at(first));
      }),
    ] as const;
  });
  return withValues(plain, Object.fromEntries(values));
}

/** Sums of the outputs and of the final states of two runs. */
function sumOf(one: RecurrentNumbers, other: RecurrentNumbers): RecurrentNumbers {
  const names = ['out', 'final_state'] as const;
  return Object.fromEntries(
    names.flatMap((name) => {
      const [a, b] = [one[name], other[name]];
      return a === undefined || b === undefined ? [] : [[name, a.map((x, i) => x + b[i])]];
    }),
  );
}

/** v and the initial state as a sum. */
export const superposition: RecurrentLawOfKernels = {
  statement:
    'Of whole numbers, sums of v and of the initial state give the sums of outputs and states, to the bit',
  reason:
    'The recurrence is linear in both, and numbers that no format rounds show it without a bound. A clamp, an absolute value and a scale by the largest element of a block do not add up.',
  strengths: ['bits'],
  usual: 'bits',
  choices: 4,
  narrow: (promises) => {
    const free = ofFamilies(
      promises,
      (family) => recurrentFamilies[family].decay !== 'fixed-by-head',
    );
    return free && { ...free, normalisation: false };
  },
  regimes: ['typical', 'chunk-edges', 'one-token', 'empty-sequences'],
  violation: async (given, choice, tools) => {
    if (given.epsilon !== null) throw new NotApplicable('its keys are normalised');
    const [first, second] = [10 + 2 * choice, 11 + 2 * choice];
    const both = wholeProblem(given, [first, second]);
    const one = await tools.run(wholeProblem(given, [first]));
    const other = await tools.run(wholeProblem(given, [second]));
    const together = await tools.run(both);
    const words = ['as a sum of two runs', 'of the sum'] as const;
    return numbersDiffer(both, sumOf(one.numbers, other.numbers), together.numbers, words);
  },
};
