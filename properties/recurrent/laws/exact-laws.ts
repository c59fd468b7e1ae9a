import { recurrentFamilies, type RecurrentFamily } from '../../../src/problem/index.js';
import { NotApplicable } from '../../laws/index.js';
import {
  axisSizes,
  withoutInputs,
  withValues,
  type InputName,
  type Place,
  type PlainRecurrence,
  type RecurrentConstraints,
  type TensorName,
} from '../problems/index.js';
import { changedAt, sequenceOfTokens } from './change-inputs.js';
import { numbersDiffer } from './compare-numbers.js';
import type { RecurrentLawOfKernels, RecurrentLawPromises } from './law.js';

/** The problems of some of the promised families; null for none. */
export function ofFamilies(
  promises: RecurrentLawPromises,
  isMeant: (family: RecurrentFamily) => boolean,
): RecurrentConstraints | null {
  const families = promises.families.filter(isMeant);
  return families.length === 0 ? null : { ...promises, families };
}

/** Problems in formats with the exponents of fp32: fp16 underflows where scaled numbers do not. */
function inLongRange(constraints: RecurrentConstraints | null): RecurrentConstraints | null {
  const formats = constraints?.formats.filter((name) => name === 'bf16' || name === 'fp32') ?? [];
  const states = constraints?.initialState.filter((name) => name !== 'fp16') ?? [];
  return constraints === null || formats.length === 0
    ? null
    : { ...constraints, formats, initialState: states };
}

/** Numbers beyond are where products may overflow or underflow. */
const largestSteady = 2 ** 30;
/** Results below are where rounding may not scale. */
const smallestResult = 2 ** -70;

/** @throws NotApplicable for numbers that are so large or small that products may leave the range */
function requireSteady({ inputs }: PlainRecurrence): void {
  for (const name of ['q', 'k', 'v', 'initial_state', 'dout', 'dfinal_state'] as const)
    for (const x of inputs[name]?.values ?? [])
      if (x !== 0 && !(Math.abs(x) <= largestSteady && Math.abs(x) >= 1 / largestSteady))
        throw new NotApplicable('its numbers are too large or too small to be scaled');
}

const factors = [2, 0.5, 4, 0.25, 2 ** 7, 2 ** -7] as const;

/** The problem with some inputs times factors. */
function scaledInputs(
  plain: PlainRecurrence,
  factorOf: Readonly<Partial<Record<InputName, number>>>,
): PlainRecurrence {
  requireSteady(plain);
  return changedAt(
    plain,
    (name) => factorOf[name] !== undefined,
    (name, x) => x * (factorOf[name] ?? 1),
  );
}

const steadyRegimes = [
  'typical',
  'slow-decay',
  'no-strength',
  'full-strength',
  'double-strength',
  'parallel-keys',
  'orthonormal-keys',
  'repeated-keys',
  'chunk-edges',
  'one-token',
  'empty-sequences',
] as const;

/** v and the initial state times a power of two. */
export const valueScaling: RecurrentLawOfKernels = {
  statement:
    'v and the initial state times a power of two give outputs and states times that, to the bit',
  reason:
    'The recurrence is linear in both, and every rounding on the way scales while nothing underflows. A constant that is added, a threshold or a clamp shows.',
  strengths: ['bits'],
  usual: 'bits',
  choices: factors.length,
  narrow: inLongRange,
  regimes: steadyRegimes,
  violation: async (plain, choice, tools) => {
    const factor = factors[choice];
    const scaled = scaledInputs(plain, { v: factor, initial_state: factor });
    const usual = await tools.run(plain);
    const found = await tools.run(scaled);
    const words = [`times ${factor}`, 'with v and the state so scaled'] as const;
    return numbersDiffer(plain, usual.numbers, found.numbers, words, {
      names: ['out', 'final_state'],
      factor: () => factor,
      counts: (_, _place, x) => x === 0 || Math.abs(x) > smallestResult,
    });
  },
};

/** Keys times a power of two, queries divided by it. */
export const keyScaling: RecurrentLawOfKernels = {
  statement:
    'Of additive writes, k times a power of two with q divided by it, and the initial state times it, give the same outputs, to the bit',
  reason:
    'An output has one key and one query in each of its terms. Keys that are normalised though nobody asked, and a state that is read by the key, show.',
  strengths: ['bits'],
  usual: 'bits',
  choices: factors.length,
  narrow: (promises) => {
    const additive = ofFamilies(
      promises,
      (family) => recurrentFamilies[family].write === 'additive',
    );
    return additive && inLongRange({ ...additive, normalisation: false });
  },
  regimes: steadyRegimes,
  violation: async (plain, choice, tools) => {
    if (plain.epsilon !== null) throw new NotApplicable('its keys are normalised');
    const factor = factors[choice];
    const scaled = scaledInputs(plain, { k: factor, q: 1 / factor, initial_state: factor });
    const usual = await tools.run(plain);
    const found = await tools.run(scaled);
    const words = ['at first', `with keys times ${factor}`] as const;
    return numbersDiffer(plain, usual.numbers, found.numbers, words, {
      names: ['out', 'final_state'],
      factor: (name) => (name === 'final_state' ? factor : 1),
      counts: (_, _place, x) => x === 0 || Math.abs(x) > smallestResult,
    });
  },
};

/** Keys and values of tokens with β = 0 changed. */
export const zeroStrength: RecurrentLawOfKernels = {
  statement: 'A write strength of 0 writes nothing: key and value of its token change nothing',
  reason:
    'What is written is β times something, and 0 times it is 0. A β that is left out of a product, or applied to keys alone, writes all the same.',
  strengths: ['bits'],
  usual: 'bits',
  choices: 4,
  narrow: (promises) =>
    ofFamilies(promises, (family) => recurrentFamilies[family].write === 'delta'),
  violation: async (plain, choice, tools) => {
    const every = [1, 2, 3, 5][choice];
    const isSilent = ({ token = -1 }: Place): boolean => token >= 0 && token % every === 0;
    const silent = changedAt(
      plain,
      (name, place) => name === 'beta' && isSilent(place),
      () => 0,
    );
    const changed = changedAt(
      silent,
      (name, place) => (name === 'k' || name === 'v') && isSilent(place),
    );
    const usual = await tools.run(silent);
    const found = await tools.run(changed);
    const words = ['at first', 'with another k and v where β is 0'] as const;
    return numbersDiffer(plain, usual.numbers, found.numbers, words, {
      names: ['out', 'final_state'],
    });
  },
};

/** What came before a gate of −∞ changed. */
export const forgetting: RecurrentLawOfKernels = {
  statement: 'A gate of −∞ forgets: what came before it changes nothing after it',
  reason:
    'A decay of 0 leaves nothing of the state. −∞ − −∞ is NaN where differences of sums are taken, and a gate that is clamped leaves a rest.',
  strengths: ['bits'],
  usual: 'bits',
  choices: 4,
  narrow: (promises) => {
    const gated = ofFamilies(
      promises,
      (family) =>
        family !== 'mamba2' &&
        ['by-head', 'by-key-dimension'].includes(recurrentFamilies[family].decay),
    );
    return promises.infiniteGates ? gated : null;
  },
  violation: async (plain, choice, tools) => {
    const { lengths } = plain;
    const sequences = sequenceOfTokens(plain);
    const longest = lengths.indexOf(Math.max(...lengths));
    const length = lengths[longest];
    if (length < 2) throw new NotApplicable('no sequence has two tokens');
    const gate = sequences.indexOf(longest) + 1 + ((choice * 29) % (length - 1));
    const isBefore = ({ token, sequence }: Place): boolean =>
      token === undefined ? sequence === longest : sequences[token] === longest && token < gate;
    const forgetful = changedAt(
      plain,
      (name, { token }) => name === 'g' && token === gate,
      () => -Infinity,
    );
    const changed = changedAt(forgetful, (_, place) => isBefore(place));
    const usual = await tools.run(forgetful);
    const found = await tools.run(changed);
    const broken = [...(usual.numbers.out ?? []), ...(usual.numbers.final_state ?? [])].some(
      Number.isNaN,
    );
    if (broken) return `there is NaN where the gate of token ${gate} is −∞`;
    const words = ['at first', `with other tokens before the gate of −∞ at ${gate}`] as const;
    return numbersDiffer(plain, usual.numbers, found.numbers, words, {
      names: ['out', 'final_state'],
      counts: (name, place) => name === 'final_state' || !isBefore(place),
    });
  },
};

/** An initial state of zeros. */
export const zeroState: RecurrentLawOfKernels = {
  statement: 'An initial state of zeros is none, to the bit',
  reason:
    'A state begins with zeros where none is given. Memory that is not cleared, and a state of another head, show.',
  strengths: ['bits'],
  usual: 'bits',
  choices: 1,
  narrow: (promises) => (promises.initialState.length === 0 ? null : promises),
  violation: async (plain, _choice, tools) => {
    const { token, sequence, valueHead, keyDim, valueDim } = axisSizes(plain);
    if (token === 0) throw new NotApplicable('the problem has no token');
    const values = new Float64Array(sequence * valueHead * keyDim * valueDim);
    const without = withoutInputs(plain, ['initial_state']);
    const format = tools.promises.initialState[0];
    const zeros = { ...without, inputs: { ...without.inputs, initial_state: { format, values } } };
    const usual = await tools.run(without);
    const found = await tools.run(zeros);
    return numbersDiffer(
      plain,
      usual.numbers,
      found.numbers,
      ['without a state', 'with one of zeros'],
      {
        names: ['out', 'final_state'],
      },
    );
  },
};

/** dO and dS_T times a power of two. */
export const gradientsLinear: RecurrentLawOfKernels = {
  statement: 'dO and dS_T times a power of two give gradients times that, to the bit',
  reason:
    'Every gradient is linear in them. A term of the forward pass that is added, or a rest of another launch, is not.',
  strengths: ['bits'],
  usual: 'bits',
  choices: factors.length,
  ofGradients: true,
  narrow: inLongRange,
  regimes: steadyRegimes,
  violation: async (plain, choice, tools) => {
    const factor = factors[choice];
    const scaled = scaledInputs(plain, { dout: factor, dfinal_state: factor });
    const usual = await tools.run(plain);
    const found = await tools.run(scaled);
    const words = [`times ${factor}`, 'with dO and dS_T so scaled'] as const;
    return numbersDiffer(plain, usual.numbers, found.numbers, words, {
      names: gradientNames,
      factor: () => factor,
      counts: (_, _place, x) => x === 0 || Math.abs(x) > smallestResult,
    });
  },
};

/** The gradients of a recurrence. */
export const gradientNames: readonly TensorName[] = [
  'dq',
  'dk',
  'dv',
  'dg',
  'dbeta',
  'dinitial_state',
  'ddt',
  'dA',
  'dD',
  'ddt_bias',
];

/** Tokens that nothing looks back at. */
export const gradientsUnseen: RecurrentLawOfKernels = {
  statement: 'Tokens behind the last dO that is not 0 have gradients of 0, without a dS_T',
  reason:
    'No output that counts reads them. Sums over the whole chunk, and a gradient of a state that is not reset, do.',
  strengths: ['bits'],
  usual: 'bits',
  choices: 4,
  ofGradients: true,
  violation: async (given, choice, tools) => {
    const plain = withoutInputs(given, ['dfinal_state']);
    const { token } = axisSizes(plain);
    if (token === 0) throw new NotApplicable('the problem has no token');
    const from = choice === 0 ? 0 : (choice * 37) % token;
    const dout = plain.inputs.dout?.values ?? new Float64Array(0);
    const silenced = dout.map((x, i) => (i < (dout.length / token) * from ? x : 0));
    const run = await tools.run(withValues(plain, { dout: silenced }));
    // An infinite gate has no gradient to speak of.
    const zeros = Object.fromEntries(
      gradientNames.map((name) => [name, run.numbers[name]?.map(() => 0)]),
    );
    const words = ['by the law', `where dO is 0 from token ${from} on`] as const;
    return numbersDiffer(plain, zeros, run.numbers, words, {
      names: gradientNames,
      counts: (name, place) =>
        from === 0 ? true : name !== 'dinitial_state' && (place.token ?? -1) >= from,
    });
  },
};
