import { formats, unitRoundoff } from '../../../src/formats/index.js';
import { NotApplicable } from '../../laws/index.js';
import {
  axisSizes,
  withoutInputs,
  withPlainSteps,
  withValues,
  type Place,
  type PlainRecurrence,
} from '../problems/index.js';
import { changedAt, sequenceOfTokens } from './change-inputs.js';
import { describeAxes, numbersDiffer } from './compare-numbers.js';
import { ofFamilies } from './exact-laws.js';
import type { RecurrentLawOfKernels } from './law.js';

const ofMamba2: RecurrentLawOfKernels['narrow'] = (promises) =>
  ofFamilies(promises, (family) => family === 'mamba2');

/** The Δ of tokens that are not silent. */
const usualStep = 0.125;

/** B and x of tokens with Δ = 0 changed. */
export const zeroStep: RecurrentLawOfKernels = {
  statement: 'A step of 0 leaves the state as it is: B and x of its token change no other token',
  reason:
    'The state is decayed by e^(Δ A) and written with Δ x, which are 1 and 0. A Δ that is left out of x, clamped or taken from another token writes all the same.',
  strengths: ['bits'],
  usual: 'bits',
  choices: 4,
  narrow: ofMamba2,
  violation: async (given, choice, tools) => {
    const every = [1, 2, 3, 5][choice];
    const isSilent = ({ token = -1 }: Place): boolean => token >= 0 && token % every === 0;
    const silent = withPlainSteps(given, (token) => (isSilent({ token }) ? 0 : usualStep));
    const changed = changedAt(
      silent,
      (name, place) => (name === 'k' || name === 'v') && isSilent(place),
    );
    const usual = await tools.run(silent);
    const found = await tools.run(changed);
    const words = ['at first', 'with another B and x where Δ is 0'] as const;
    return numbersDiffer(silent, usual.numbers, found.numbers, words, {
      names: ['out', 'final_state'],
      // Its own output has D x of it.
      counts: (_, place) => !isSilent(place),
    });
  },
};

/** A Δ of so much, times an A of −1 and less, leaves nothing in any format: e^-1024 is 0 in fp64 too. */
const longStepSize = 1024;

/** What came before a token with a long step changed. */
export const longStep: RecurrentLawOfKernels = {
  statement: 'A step of which Δ A is −1024 or less forgets: B and x before it change nothing after',
  reason:
    'e^-1024 is 0 in every format, so that nothing of the state is left. A decay that is clamped, and states of chunks that are decayed by a part of the step, leave a rest.',
  strengths: ['bits'],
  usual: 'bits',
  choices: 4,
  narrow: ofMamba2,
  violation: async (given, choice, tools) => {
    if (!given.inputs.A!.values.every((a) => a <= -1))
      throw new NotApplicable('an A is larger than −1');
    const { lengths } = given;
    const sequences = sequenceOfTokens(given);
    const longest = lengths.indexOf(Math.max(...lengths));
    const length = lengths[longest];
    if (length < 2) throw new NotApplicable('no sequence has two tokens');
    const long = sequences.indexOf(longest) + 1 + ((choice * 29) % (length - 1));
    const plain = withPlainSteps(given, (token) => (token === long ? longStepSize : usualStep));
    const isBefore = ({ token, sequence }: Place): boolean =>
      token === undefined ? sequence === longest : sequences[token] === longest && token < long;
    // Steps stay: chunks add those before to those after, and take them away again, which rounds.
    const changed = changedAt(
      plain,
      (name, place) => ['k', 'v', 'initial_state'].includes(name) && isBefore(place),
    );
    const usual = await tools.run(plain);
    const found = await tools.run(changed);
    const words = [
      'at first',
      `with another B and x before the long step of token ${long}`,
    ] as const;
    return numbersDiffer(plain, usual.numbers, found.numbers, words, {
      names: ['out', 'final_state'],
      counts: (name, place) => name === 'final_state' || !isBefore(place),
    });
  },
};

/** Products below are where formats underflow. */
const smallestProduct = 2 ** -12;

/** The problem of which outputs are D x alone: C of zeros, and no gate. */
function skipAlone(given: PlainRecurrence): PlainRecurrence {
  const plain = withoutInputs(given, ['z']);
  return withValues(plain, { q: plain.inputs.q.values.map(() => 0) });
}

/** D x alone. */
export const skipOfZeros: RecurrentLawOfKernels = {
  statement: 'With C of 0 and no gate, the output is D x, or 0 without D',
  reason:
    'Nothing is read of the state. A D of another head, one that is added to the state, or x that Δ has been multiplied into shows, without any oracle.',
  strengths: ['bound'],
  usual: 'bound',
  choices: 1,
  narrow: ofMamba2,
  violation: async (given, _choice, tools) => {
    const plain = skipAlone(given);
    const { D, v } = plain.inputs;
    const { valueHead, valueDim } = axisSizes(plain);
    const { numbers, results } = await tools.run(plain);
    const { out } = numbers;
    if (out === undefined || results.out === undefined || out.length === 0)
      throw new NotApplicable('the problem has no output');
    // A product, a sum and the output are rounded, and so may x be before.
    const unit = Math.max(
      unitRoundoff(formats[v.format]),
      unitRoundoff(formats[results.out.format]),
    );
    for (const [i, found] of out.entries()) {
      const column = i % valueDim;
      const head = Math.floor(i / valueDim) % valueHead;
      const exact = (D?.values[head] ?? 0) * v.values[i];
      const limit = 2.01 * unit * Math.max(Math.abs(exact), exact === 0 ? 0 : smallestProduct);
      if (Math.abs(found - exact) <= limit) continue;
      const token = Math.floor(i / valueDim / valueHead);
      const place = describeAxes({ token, valueHead: head, valueDim: column });
      return `out at ${place} is ${found} for D x of ${exact} ± ${limit}, with C of 0`;
    }
    return null;
  },
};
