import { NotApplicable } from '../../laws/index.js';
import {
  axesOf,
  axisSizes,
  placeOf,
  type InputName,
  type Place,
  type PlainRecurrence,
  type TensorName,
} from '../problems/index.js';
import { changedAt, sequenceOfTokens } from './change-inputs.js';
import { numbersDiffer } from './compare-numbers.js';
import type { RecurrentLawOfKernels } from './law.js';

/** The same problem again. */
export const determinism: RecurrentLawOfKernels = {
  statement: 'The same problem gives the same bits again',
  reason:
    'Nothing in a kernel depends on what ran before; atomics whose order is open, races and states that are not reset do.',
  strengths: ['bits'],
  usual: 'bits',
  choices: 1,
  violation: async (plain, _choice, tools) => {
    const first = await tools.run(plain);
    const again = await tools.run(plain);
    return numbersDiffer(plain, first.numbers, again.numbers, ['at first', 'again']);
  },
};

/** Whether a place is behind a token of the first sequence that is long enough, or in another sequence. */
function cutOf(plain: PlainRecurrence, choice: number): number {
  const tokens = axisSizes(plain).token;
  if (tokens < 2) throw new NotApplicable('the problem has no later token');
  return 1 + (choice === 0 ? Math.floor((tokens - 2) / 2) : (choice * 37) % (tokens - 1));
}

/** Later tokens changed. */
export const causality: RecurrentLawOfKernels = {
  statement: 'What later tokens hold changes nothing of the outputs before them',
  reason:
    'A state knows the tokens up to its own. A triangle that has one diagonal too many, sums of gates of the whole chunk and a state that is stored too late look ahead.',
  strengths: ['bits'],
  usual: 'bits',
  choices: 8,
  violation: async (plain, choice, tools) => {
    const cut = cutOf(plain, choice);
    const later = ({ token = -1 }: Place): boolean => token >= cut;
    const changed = changedAt(plain, (_, place) => later(place));
    const words = ['at first', `with other tokens from ${cut} on`] as const;
    const usual = await tools.run(plain);
    const found = await tools.run(changed);
    return numbersDiffer(plain, usual.numbers, found.numbers, words, {
      names: ['out'],
      counts: (_, place) => !later(place),
    });
  },
};

/** One sequence and key head, to which a place belongs or not; a tensor without such an axis belongs to both. */
function streamOf(plain: PlainRecurrence, choice: number): (place: Place) => boolean {
  const { keyHeads, valueHeads, lengths } = plain;
  const streams = lengths.length * keyHeads;
  if (streams < 2) throw new NotApplicable('the problem has one sequence and one key head');
  const stream = choice % streams;
  const [sequence, head] = [Math.floor(stream / keyHeads), stream % keyHeads];
  const group = valueHeads / keyHeads;
  const sequences = sequenceOfTokens(plain);
  return (place) => {
    const ofHead = place.keyHead ?? Math.floor((place.valueHead ?? 0) / group);
    const ofSequence =
      place.sequence ?? (place.token === undefined ? null : sequences[place.token]);
    // What a head has for all sequences belongs to each.
    return ofHead === head && (ofSequence === null || ofSequence === sequence);
  };
}

const otherStreams: RecurrentLawOfKernels = {
  statement: 'What other heads and other sequences hold changes nothing of a head',
  reason:
    'Each head of a sequence has a state of its own. Strides that are wrong, a key head of another group, a state that is carried on to the next sequence show.',
  strengths: ['bits'],
  usual: 'bits',
  choices: 8,
  violation: async (plain, choice, tools) => {
    const isOwn = streamOf(plain, choice);
    const changed = changedAt(plain, (_, place) => !isOwn(place));
    const usual = await tools.run(plain);
    const found = await tools.run(changed);
    const words = ['at first', 'with other heads and sequences changed'] as const;
    // A gradient of what a head has for all sequences is a sum over them.
    const isSum = ({ token, sequence }: Place): boolean =>
      token === undefined && sequence === undefined && plain.lengths.length > 1;
    return numbersDiffer(plain, usual.numbers, found.numbers, words, {
      counts: (_, place) => isOwn(place) && !isSum(place),
    });
  },
};
/** Other heads and sequences changed. */
export const headsIndependent = otherStreams;
/** The same of gradients. */
export const gradientsHeads: RecurrentLawOfKernels = {
  ...otherStreams,
  statement: 'What other heads and other sequences hold changes no gradient of a head',
  ofGradients: true,
};

/** Other columns of v and of the initial state set to zero. */
export const columnsIndependent: RecurrentLawOfKernels = {
  statement: 'Columns of v and of the initial state are independent of one another',
  reason:
    'A write adds to each column of the state its own multiple of the key. Blocks of columns that are confused, or share a sum, mix them.',
  strengths: ['bits'],
  usual: 'bits',
  choices: 4,
  violation: async (plain, choice, tools) => {
    if (plain.valueDim < 2) throw new NotApplicable('the values have one column');
    const column = choice % plain.valueDim;
    const isOther = (name: InputName, { valueDim = column }: Place): boolean =>
      (name === 'v' || name === 'initial_state') && valueDim !== column;
    const changed = changedAt(plain, isOther, () => 0);
    const usual = await tools.run(plain);
    const found = await tools.run(changed);
    return numbersDiffer(
      plain,
      usual.numbers,
      found.numbers,
      ['at first', 'with other columns zero'],
      {
        names: ['out', 'final_state'],
        counts: (_, { valueDim }) => valueDim === column,
      },
    );
  },
};

/** A NaN in a column of v. */
export const nanContainment: RecurrentLawOfKernels = {
  statement: 'A NaN in v reaches its own column of its own head and sequence, and nothing else',
  reason:
    'Memory beyond a sequence may hold anything, and so may another request of the batch. Chunks that run over the end of a sequence, and states that are not reset, spread it.',
  strengths: ['bits'],
  usual: 'bits',
  choices: 4,
  violation: async (plain, choice, tools) => {
    const { v } = plain.inputs;
    if (v.values.length < 2) throw new NotApplicable('v has one element');
    const at = choice === 0 ? v.values.length - 1 : (choice * 7919) % v.values.length;
    const poisoned = placeOf(at, axesOf('v', plain.family), axisSizes(plain));
    const sequences = sequenceOfTokens(plain);
    const sequence = sequences[poisoned.token ?? 0];
    const isReached = (place: Place): boolean =>
      place.valueHead === poisoned.valueHead &&
      place.valueDim === poisoned.valueDim &&
      (place.sequence ?? sequences[place.token ?? 0]) === sequence;
    const values = v.values.with(at, NaN);
    const usual = await tools.run(plain);
    const found = await tools.run({
      ...plain,
      inputs: { ...plain.inputs, v: { ...v, values } },
    });
    const names: readonly TensorName[] = ['out', 'final_state'];
    return numbersDiffer(
      plain,
      usual.numbers,
      found.numbers,
      ['at first', 'with a NaN elsewhere in v'],
      {
        names,
        counts: (_, place) => !isReached(place),
      },
    );
  },
};
