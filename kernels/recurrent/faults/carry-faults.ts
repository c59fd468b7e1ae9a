import { decodeTensor } from '../../../src/formats/index.js';
import type { ChunkChange, ChunkParts, ChunkPlace } from '../chunk-parts.js';
import { at, chunkFault } from './chunk-change.js';
import { runFault, type FaultSetting, type RecurrentFault } from './fault.js';
import { chunkStarts, gatesOf, hasDecay, isDelta, raggedTails } from './tensors.js';

const always = () => true;
const hasLaterChunks = ({ problem, chunk }: FaultSetting) => chunkStarts(problem, chunk).size > 0;

/** Whether a chunk's whole tail decays by numbers above 0. */
const hasOpenTail = (setting: FaultSetting) =>
  hasDecay(setting) &&
  raggedTails(setting.problem, setting.chunk).size > 0 &&
  decodeTensor(gatesOf(setting.problem)).every((g) => g > -20);

/** A change at the end of a chunk that knows the state before it. */
function atEnd(
  change: (state: Float64Array, before: Float64Array, parts: ChunkParts, place: ChunkPlace) => void,
): ChunkChange {
  const kept: { before: Float64Array } = { before: new Float64Array(0) };
  return (stage, parts, place, state) => {
    if (stage === 'start') kept.before = state.slice();
    if (stage === 'end') change(state, kept.before, parts, place);
  };
}

/** The decay of a state's element over a chunk. */
function decayOver({ decays: { count, fromStart } }: ChunkParts, n: number, size: number) {
  const keyDim = count > 1 ? count : 1;
  return (i: number) =>
    count === 0
      ? 1
      : fromStart[(n - 1) * count + (count > 1 ? Math.floor(i / (size / keyDim)) : 0)];
}

/** Reads the state before the chunk before, in place of that before the chunk. */
function staleState(): ChunkChange {
  const kept: { before: Float64Array } = { before: new Float64Array(0) };
  return at('start', ({ stateOperand }, { chunk }, state) => {
    if (chunk > 0) stateOperand.set(kept.before);
    kept.before = state.slice();
  });
}

/** Faults of the state from chunk to chunk. */
export const carryFaults: readonly RecurrentFault[] = [
  chunkFault(
    'state-not-read',
    'outputs and writes of a chunk lack the state before it',
    always,
    () => at('start', ({ stateOperand }) => stateOperand.fill(0)),
  ),
  chunkFault(
    'state-left-out-of-writes',
    'delta writes of a chunk lack the state before it',
    isDelta,
    () =>
      at('writes', ({ exactWrites, writes, valueFactor }) => {
        exactWrites.set(valueFactor);
        writes.set(valueFactor);
      }),
  ),
  chunkFault(
    'state-left-out-of-second-chunk',
    'delta writes of the second chunk lack the state before it',
    (setting) => isDelta(setting) && hasLaterChunks(setting),
    () =>
      at('writes', ({ exactWrites, writes, valueFactor }, { chunk }) => {
        if (chunk !== 1) return;
        exactWrites.set(valueFactor);
        writes.set(valueFactor);
      }),
  ),
  ...[0, 1].map((lost) =>
    chunkFault(
      `chunk-${lost + 1}-lost`,
      `the state lacks what the ${lost === 0 ? 'first' : 'second'} chunk of a sequence writes`,
      (setting) => (lost === 0 ? always() : hasLaterChunks(setting)),
      () =>
        at('writes', ({ exactWrites }, { chunk }) => {
          if (chunk === lost) exactWrites.fill(0);
        }),
    ),
  ),
  chunkFault(
    'state-stale',
    'chunks read the state before the chunk before',
    hasLaterChunks,
    staleState,
  ),
  chunkFault(
    'state-not-decayed-over-chunks',
    'the state is not decayed from chunk to chunk',
    hasDecay,
    () =>
      atEnd((state, before, parts, { inputs }) => {
        const decay = decayOver(parts, inputs.count, state.length);
        for (let i = 0; i < state.length; i++) state[i] += (1 - decay(i)) * before[i];
      }),
  ),
  chunkFault(
    'writes-not-decayed-to-chunk-end',
    'what a chunk writes is not decayed to its end',
    hasDecay,
    () => at('start', ({ decays }) => decays.toEnd.fill(1)),
  ),
  chunkFault(
    'tail-decays-missing',
    'the sum of gates at the end of a chunk that is not whole is taken as 0',
    hasOpenTail,
    ({ chunk }) =>
      atEnd((state, _, parts, { inputs }) => {
        if (inputs.count === chunk) return;
        const decay = decayOver(parts, inputs.count, state.length);
        for (let i = 0; i < state.length; i++) state[i] /= decay(i);
      }),
  ),
  chunkFault(
    'state-transposed-between-chunks',
    'the state is transposed from chunk to chunk',
    ({ problem }) => problem.q.shape[3] === problem.v.shape[3],
    ({ problem }) => {
      const dim = problem.v.shape[3];
      return at('end', (_, { chunk, chunks }, state) => {
        if (chunk === chunks - 1) return;
        const old = state.slice();
        for (let i = 0; i < state.length; i++)
          state[i] = old[(i % dim) * dim + Math.floor(i / dim)];
      });
    },
  ),
  runFault('write-e4m3', 'what is written is kept in e4m3', always, () => ({
    form: 'chunked',
    formats: { write: 'e4m3', 'write-operand': 'e4m3' },
  })),
  runFault('inverse-fp8', 'the inverse is kept in e4m3', isDelta, () => ({
    form: 'chunked',
    formats: { inverse: 'e4m3' },
  })),
];
