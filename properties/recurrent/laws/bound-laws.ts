import { formats, unitRoundoff } from '../../../src/formats/index.js';
import { recurrentFamilies } from '../../../src/problem/index.js';
import { NotApplicable } from '../../laws/index.js';
import {
  axisSizes,
  pickParts,
  sequenceRanges,
  withoutInputs,
  withPlainSteps,
  withValues,
  type PlainInput,
  type PlainRecurrence,
} from '../problems/index.js';
import { sequenceOfTokens } from './change-inputs.js';
import { numbersDiffer } from './compare-numbers.js';
import { ofFamilies } from './exact-laws.js';
import type { RecurrentLawOfKernels, RecurrentLawTools, RecurrentRun } from './law.js';

/** Judged by an audit. */
export const withinBound: RecurrentLawOfKernels = {
  statement:
    'Outputs and final states are as near to the exact recurrence as rounding lets them be',
  reason:
    'Every operation of a correct kernel errs by a rounding at most, and what these add up to is bounded and known.',
  strengths: ['bound'],
  usual: 'bound',
  choices: 1,
  violation: async (plain, _choice, tools) => tools.judge(await tools.run(plain), false),
};

/** The same with gradients, and the sums that are one number. */
export const gradientsWithinBound: RecurrentLawOfKernels = {
  statement:
    'Gradients are as near to the exact ones as rounding lets them be, and ⟨dO, O⟩ + ⟨dS_T, S_T⟩ is ⟨dV, V⟩ + ⟨dS_0, S_0⟩ and ⟨dO, O⟩ is ⟨dQ, Q⟩',
  reason:
    'Every operation of a correct backward errs by a rounding at most; the recurrence is linear in v with the state, and in q.',
  strengths: ['bound'],
  usual: 'bound',
  choices: 1,
  ofGradients: true,
  violation: async (plain, _choice, tools) => tools.judge(await tools.run(plain), false),
};

/** The gradients of the same problem again. */
export const gradientsDeterminism: RecurrentLawOfKernels = {
  statement: 'The same problem gives the same gradients again',
  reason:
    'Where no order of sums is open the bits are the same; atomics and scratch that is not cleared change them.',
  strengths: ['bits'],
  usual: 'bits',
  choices: 1,
  ofGradients: true,
  narrow: (promises) => (promises.deterministic ? promises : null),
  violation: async (plain, _choice, tools) => {
    const first = await tools.run(plain);
    const again = await tools.run(plain);
    return numbersDiffer(plain, first.numbers, again.numbers, ['at first', 'again']);
  },
};

function range(first: number, end: number): number[] {
  return Array.from({ length: Math.max(0, end - first) }, (_, i) => first + i);
}

/** Tokens of every sequence, from its token `from` (or its end) to its token `to` (or its end). */
function stretch(plain: PlainRecurrence, from: number, to: number): PlainRecurrence {
  const parts = sequenceRanges(plain.lengths).map(({ first, end }) => ({
    first: Math.min(end, first + from),
    end: Math.min(end, first + to),
  }));
  return pickParts(
    plain,
    { token: parts.flatMap(({ first, end }) => range(first, end)) },
    parts.map(({ first, end }) => end - first),
  );
}

/** The state that a run ended with, as an input. */
function handedOver(run: RecurrentRun): PlainInput {
  const { final_state: state } = run.results;
  if (state === undefined) throw new NotApplicable('the kernel gives no final state');
  return { format: state.format, values: run.numbers.final_state ?? new Float64Array(0) };
}

/** The problem run stretch by stretch, each beginning with the state that the one before ended with. */
async function runInStretches(
  plain: PlainRecurrence,
  cuts: readonly number[],
  tools: RecurrentLawTools,
): Promise<RecurrentRun> {
  const rowSize = plain.valueHeads * plain.valueDim;
  const out = new Float64Array(axisSizes(plain).token * rowSize);
  const ranges = sequenceRanges(plain.lengths);
  let last: RecurrentRun | null = null;
  for (const [i, from] of cuts.entries()) {
    const to = cuts[i + 1] ?? Infinity;
    const part = stretch(plain, from, to);
    const begun: PlainRecurrence =
      last === null
        ? part
        : { ...part, inputs: { ...part.inputs, initial_state: handedOver(last) } };
    last = await tools.run(begun);
    let row = 0;
    for (const { first, end } of ranges)
      for (
        let token = Math.min(end, first + from);
        token < Math.min(end, first + to);
        token++, row++
      )
        out.set(
          (last.numbers.out ?? out).subarray(row * rowSize, (row + 1) * rowSize),
          token * rowSize,
        );
  }
  if (last === null) throw new NotApplicable('there is nothing to run');
  return tools.composed(plain, { out, final_state: last.numbers.final_state }, last);
}

/** @throws NotApplicable for sequences of one token */
function longestOf({ lengths }: PlainRecurrence): number {
  const longest = Math.max(0, ...lengths);
  if (longest < 2) throw new NotApplicable('no sequence has two tokens');
  return longest;
}

/**
 * What an audit says against a run in stretches. Chunks end where stretches do, so that a kernel in chunks may read its states as often as
 * one that has a chunk for each token.
 */
function judgeStretches(run: RecurrentRun, tools: RecurrentLawTools): string | null {
  const violation = tools.judge(run, true);
  if (violation === null || run.declared.form === 'recurrent') return violation;
  const declared = { ...run.declared, form: 'chunked', chunk: 1 } as const;
  return tools.judge({ ...run, declared }, true) && violation;
}

/** A prefix, and the rest with its state. */
export const handedOverState: RecurrentLawOfKernels = {
  statement:
    'A prefix, then the rest with the state that the prefix ended with, give what the whole gives',
  reason:
    'All that later tokens know of earlier ones is the state. A final state that lacks the last chunk or its decay, is transposed, or is handed over in another scale shows.',
  strengths: ['bound'],
  usual: 'bound',
  choices: 8,
  narrow: (promises) => (promises.initialState.length === 0 ? null : promises),
  violation: async (plain, choice, tools) => {
    const longest = longestOf(plain);
    const cut = 1 + (choice === 0 ? Math.floor((longest - 2) / 2) : (choice * 37) % (longest - 1));
    const violation = judgeStretches(await runInStretches(plain, [0, cut], tools), tools);
    return violation && `with the state handed over at token ${cut}, ${violation}`;
  },
};

/** The most tokens that are decoded one by one. */
const mostSteps = 8;

/** The last tokens one by one. */
export const tokenByToken: RecurrentLawOfKernels = {
  statement:
    'The last tokens one by one, each with the state before it, give what all at once give',
  reason:
    'Decoding is the same recurrence. Kernels of one token that decay after they write, read the state before it, or leave out the scale differ.',
  strengths: ['bound'],
  usual: 'bound',
  choices: 1,
  narrow: (promises) => (promises.initialState.length === 0 ? null : promises),
  violation: async (plain, _choice, tools) => {
    const longest = longestOf(plain);
    const first = Math.max(0, longest - mostSteps);
    const cuts = [...new Set([0, ...range(first, longest)])];
    const violation = judgeStretches(await runInStretches(plain, cuts, tools), tools);
    return violation && `token by token from ${first} on, ${violation}`;
  },
};

/** Each sequence by itself. */
export const sequencesAlone: RecurrentLawOfKernels = {
  statement: 'A sequence alone gives what it gives among others, packed or in a batch',
  reason:
    'Each sequence is a problem of its own. Boundaries that are off by a token, chunks that span two sequences, and a state of the neighbour show.',
  strengths: ['bound', 'bits'],
  usual: 'bound',
  choices: 1,
  violation: async (plain, _choice, tools) => {
    const { lengths } = plain;
    if (lengths.length < 2) throw new NotApplicable('the problem has one sequence');
    const together = await tools.run(plain);
    const tokens = sequenceOfTokens(plain);
    const numbers = {
      out: new Float64Array(together.numbers.out?.length ?? 0),
      final_state: new Float64Array(together.numbers.final_state?.length ?? 0),
    };
    const stateSize = numbers.final_state.length / lengths.length;
    for (const [sequence, length] of lengths.entries()) {
      // A kernel need not take a problem without tokens.
      if (length === 0) {
        const [from, to] = [sequence * stateSize, (sequence + 1) * stateSize];
        numbers.final_state.set(together.numbers.final_state?.subarray(from, to) ?? [], from);
        continue;
      }
      const first = tokens.indexOf(sequence);
      const picks = { token: range(first, first + length), sequence: [sequence] };
      const alone = await tools.run({ ...pickParts(plain, picks, [length]), isPacked: false });
      numbers.out.set(alone.numbers.out ?? [], first * plain.valueHeads * plain.valueDim);
      numbers.final_state.set(alone.numbers.final_state ?? [], sequence * stateSize);
    }
    if (tools.strength === 'bits')
      return numbersDiffer(plain, together.numbers, numbers, ['among others', 'alone']);
    const among = tools.judge(together, true);
    if (among !== null) return `with sequences among others, ${among}`;
    const violation = tools.judge(tools.composed(plain, numbers, together), true);
    return violation && `with sequences alone, ${violation}`;
  },
};

/** The problem of orthonormal keys with β = 1, of mamba2 with Δ = 1, without decay and initial state. */
function recallOf(given: PlainRecurrence): PlainRecurrence {
  const plain = withPlainSteps(given, () => 1);
  const { beta, g, A } = plain.inputs;
  return withValues(withoutInputs(plain, ['initial_state']), {
    ...(A === undefined ? {} : { A: A.values.map(() => 0) }),
    ...(beta === undefined ? {} : { beta: beta.values.map(() => 1) }),
    ...(g === undefined ? {} : { g: g.values.map(() => 0) }),
  });
}

/** What the final state holds at each token's key, beside the token's value; `lasts` picks the tokens that count. */
function heldViolation(
  { plain, numbers, results }: RecurrentRun,
  lasts: (token: number, head: number) => boolean,
  writes: number,
): string | null {
  const { keyHeads, valueHeads, keyDim, valueDim, inputs } = plain;
  const { k, v } = inputs;
  const state = numbers.final_state;
  if (state === undefined || results.final_state === undefined)
    throw new NotApplicable('the kernel gives no final state');
  // Each write passes four roundings of the inputs' format at most, or of the state's: the value, W, U and what is written.
  const unit = Math.max(
    unitRoundoff(formats[v.format]),
    unitRoundoff(formats[results.final_state.format]),
  );
  const largest = v.values.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
  const limit = (4 * writes + 4) * 2 * unit * largest * 1.01;
  const group = valueHeads / keyHeads;
  for (const [token, sequence] of sequenceOfTokens(plain).entries())
    for (let head = 0; head < valueHeads; head++) {
      if (!lasts(token, head)) continue;
      const key = (token * keyHeads + Math.floor(head / group)) * keyDim;
      for (let c = 0; c < valueDim; c++) {
        let held = 0;
        for (let i = 0; i < keyDim; i++)
          held +=
            k.values[key + i] * state[((sequence * valueHeads + head) * keyDim + i) * valueDim + c];
        const wanted = v.values[(token * valueHeads + head) * valueDim + c];
        if (!(Math.abs(held - wanted) <= limit))
          return `the final state holds ${held} for ${wanted} ± ${limit} at the key of token ${token}, value head ${head}, column ${c}`;
      }
    }
  return null;
}

/** Orthonormal keys recall their values. */
export const recall: RecurrentLawOfKernels = {
  statement:
    'With orthonormal keys, write strengths of 1 and no decay, the final state holds every value at its key',
  reason:
    'What is written at a key meets no other. Values that are written twice, keys of a neighbour and a β or a decay of another token show, without any oracle.',
  strengths: ['bound'],
  usual: 'bound',
  choices: 1,
  narrow: (promises) => {
    const free = ofFamilies(
      promises,
      (family) => recurrentFamilies[family].decay !== 'fixed-by-head',
    );
    return free && { ...free, normalisation: false };
  },
  regimes: ['orthonormal-keys'],
  violation: async (plain, _choice, tools) =>
    heldViolation(await tools.run(recallOf(plain)), () => true, 1),
};

/** A key that comes again holds its last value. */
export const overwriting: RecurrentLawOfKernels = {
  statement:
    'A key of length 1 that comes again with a write strength of 1, without decay, holds its last value alone',
  reason:
    'A delta write removes what the key holds. One that adds, or removes what another chunk or another token held, leaves a rest.',
  strengths: ['bound'],
  usual: 'bound',
  choices: 1,
  narrow: (promises) => {
    const delta = ofFamilies(promises, (family) => recurrentFamilies[family].write === 'delta');
    return delta && { ...delta, normalisation: false };
  },
  regimes: ['typical', 'chunk-edges', 'empty-sequences'],
  violation: async (given, _choice, tools) => {
    const plain = recallOf(given);
    const { k, v } = plain.inputs;
    // Three keys by turns: unit vectors, so that they do not meet.
    const turns = Math.min(3, plain.keyDim);
    const values = k.values.map((_, i) => {
      const token = Math.floor(i / (plain.keyHeads * plain.keyDim));
      return i % plain.keyDim === token % turns ? 1 : 0;
    });
    const run = await tools.run(withValues(plain, { k: values, v: v.values }));
    const tokens = sequenceOfTokens(plain);
    const isLast = (token: number): boolean => tokens[token + turns] !== tokens[token];
    return heldViolation(run, isLast, Math.max(...plain.lengths));
  },
};

/** Families with gates, and those that they are with gates of 0. */
const ungated = {
  'simple-gla': 'linear',
  gla: 'linear',
  'gated-delta': 'delta',
  kda: 'delta',
} as const;

/** Gates of 0 are none. */
export const neutralGates: RecurrentLawOfKernels = {
  statement: 'With gates of 0 a family is the one without gates',
  reason:
    'A decay of 1 leaves the state as it is. Kernels of two families that do not agree have one that is wrong.',
  strengths: ['bound'],
  usual: 'bound',
  choices: 1,
  narrow: (promises) =>
    ofFamilies(
      promises,
      (family) =>
        family in ungated && promises.families.includes(ungated[family as keyof typeof ungated]),
    ),
  violation: async (plain, _choice, tools) => {
    const { g } = plain.inputs;
    const family = ungated[plain.family as keyof typeof ungated];
    if (g === undefined || family === undefined) throw new NotApplicable('the family has no gates');
    const still = withValues(plain, { g: g.values.map(() => 0) });
    const without = await tools.run({ ...withoutInputs(still, ['g']), family });
    const violation = tools.judge(tools.composed(still, without.numbers, without), true);
    return violation && `as ${family}, ${violation}`;
  },
};

/** Other settings of the kernel. */
export const configurations: RecurrentLawOfKernels = {
  statement:
    'Outputs and final states stay within rounding in every configuration, such as other chunks',
  reason:
    'How many tokens are taken at a time is a matter of speed; what is right with one chunk only is a bug.',
  strengths: ['bound'],
  usual: 'bound',
  choices: 8,
  narrow: (promises) => (Object.keys(promises.configurations).length === 0 ? null : promises),
  violation: async (plain, choice, tools) => {
    const names = Object.keys(tools.promises.configurations);
    const name = names[choice % names.length];
    const violation = tools.judge(await tools.runConfiguration(name, plain), false);
    return violation && `with ${name}, ${violation}`;
  },
};
