import { decodeTensor } from '../../../src/formats/index.js';
import { recurrentShape, type RecurrentProblem } from '../../../src/problem/index.js';
import { problemFault, runFault, type FaultSetting, type RecurrentFault } from './fault.js';
import {
  chunkStarts,
  gathered,
  gatesOf,
  hasDecay,
  ofLaterToken,
  ofNext,
  sequencesByToken,
  tokenOf,
  withGates,
  withMappedGates,
} from './tensors.js';

/** Gates of its own, from a tensor. */
const hasGates = ({ problem }: FaultSetting) => problem.g !== undefined;
const hasLaterChunks = ({ problem, chunk }: FaultSetting) => chunkStarts(problem, chunk).size > 0;
const hasLaterGatedChunks = (setting: FaultSetting) => hasDecay(setting) && hasLaterChunks(setting);
const hasHeads = (setting: FaultSetting) => setting.problem.v.shape[2] > 1;
const isGrouped = ({ problem }: FaultSetting) => problem.v.shape[2] > problem.q.shape[2];
const isByDimension = ({ problem }: FaultSetting) => problem.g?.shape.length === 4;

/** The sum of the gates of a sequence before the token of each gate, by head and dimension. */
function sumsBefore(problem: RecurrentProblem): Float64Array {
  const gates = gatesOf(problem);
  const values = decodeTensor(gates);
  const size = gates.shape.slice(2).reduce((a, b) => a * b, 1);
  const sequences = sequencesByToken(problem);
  const sums = new Float64Array(values.length);
  for (let i = size; i < values.length; i++) {
    const token = tokenOf(gates, i);
    if (token > sequences[token].first) sums[i] = sums[i - size] + values[i - size];
  }
  return sums;
}

/** The problem with gates changed where chunks begin, the first of a sequence apart. */
function atChunkStarts(
  { problem, chunk }: FaultSetting,
  change: (gate: number, index: number) => number,
): RecurrentProblem {
  const starts = chunkStarts(problem, chunk);
  const gates = gatesOf(problem);
  return withMappedGates(problem, (x, i) => (starts.has(tokenOf(gates, i)) ? change(x, i) : x));
}

/** The problem with the gates of its second part, of `parts` equal ones, from the beginning of its sequence on, and so on. */
function gatesOfFirstPart(problem: RecurrentProblem, parts: number): RecurrentProblem {
  const gates = gatesOf(problem);
  const size = gates.shape.slice(2).reduce((a, b) => a * b, 1);
  const sequences = sequencesByToken(problem);
  const moved = gathered(gates, (i) => {
    const token = tokenOf(gates, i);
    const { first, end } = sequences[token];
    const length = Math.ceil((end - first) / parts);
    return i - (token - first - ((token - first) % length)) * size;
  });
  return withGates(problem, moved);
}

const gates = (id: string, sentence: string, change: (gate: number) => number) =>
  problemFault(id, sentence, hasDecay, ({ problem }) => withMappedGates(problem, change));

/** Faults of decays and gates. */
export const gateFaults: readonly RecurrentFault[] = [
  gates('decay-missing', 'the decay is left out', () => 0),
  gates('decay-twice', 'the decay acts twice', (g) => 2 * g),
  gates('gates-of-base-2', 'gates are exponents of 2 instead of e', (g) => g * Math.LN2),
  gates(
    'gates-times-log2e',
    'gates are multiplied by log2 e, and still exponents of e',
    (g) => g * Math.LOG2E,
  ),
  problemFault(
    'gates-clamped',
    'gates below −5 count as −5',
    ({ problem }) => problem.g !== undefined && decodeTensor(problem.g).some((g) => g < -5),
    ({ problem }) => withMappedGates(problem, (g) => Math.max(g, -5)),
  ),
  problemFault(
    'gates-of-token-before',
    'each token has the gate of the one before',
    hasGates,
    ({ problem }) => withGates(problem, ofLaterToken(problem, gatesOf(problem), -1)),
  ),
  problemFault(
    'gates-of-next-token',
    'each token has the gate of the next',
    hasGates,
    ({ problem }) => withGates(problem, ofLaterToken(problem, gatesOf(problem), 1)),
  ),
  problemFault(
    'gates-of-other-head',
    'each head has the gates of the next',
    (setting) => hasDecay(setting) && hasHeads(setting),
    ({ problem }) => withGates(problem, ofNext(gatesOf(problem), 2)),
  ),
  problemFault(
    'gates-of-key-head',
    'value heads have the gates of the head with the number of their key head',
    (setting) => hasDecay(setting) && isGrouped(setting),
    ({ problem }) => {
      const { valueHeads, keyHeads } = recurrentShape(problem);
      const all = gatesOf(problem);
      const size = all.shape.slice(3).reduce((a, b) => a * b, 1);
      const group = valueHeads / keyHeads;
      return withGates(
        problem,
        gathered(all, (i) => {
          const head = Math.floor(i / size) % valueHeads;
          return i + (Math.floor(head / group) - head) * size;
        }),
      );
    },
  ),
  problemFault(
    'gates-of-first-dimension',
    'all key dimensions have the gate of the first',
    isByDimension,
    ({ problem }) =>
      withGates(
        problem,
        gathered(gatesOf(problem), (i) => i - (i % problem.q.shape[3])),
      ),
  ),
  problemFault(
    'gates-of-other-dimension',
    'each key dimension has the gate of the next',
    (setting) => isByDimension(setting) && setting.problem.q.shape[3] > 1,
    ({ problem }) => withGates(problem, ofNext(gatesOf(problem), 3)),
  ),
  runFault('gates-bf16', 'sums of gates are kept in bf16', hasDecay, () => ({
    formats: { gates: 'bf16' },
  })),
  runFault('decays-bf16', 'decays are kept in bf16', hasDecay, () => ({
    formats: { decay: 'bf16' },
  })),
  problemFault(
    'decay-missing-at-chunk-start',
    'the decay of the first token of each later chunk is left out',
    hasLaterGatedChunks,
    (setting) => atChunkStarts(setting, () => 0),
  ),
  problemFault(
    'decay-twice-at-chunk-start',
    'the decay of the first token of each later chunk acts twice',
    hasLaterGatedChunks,
    (setting) => atChunkStarts(setting, (g) => 2 * g),
  ),
  problemFault(
    'gates-summed-over-sequence',
    'gates are summed from the beginning of the sequence instead of that of the chunk',
    hasLaterGatedChunks,
    (setting) => {
      const sums = sumsBefore(setting.problem);
      return atChunkStarts(setting, (g, i) => g + sums[i]);
    },
  ),
  problemFault(
    'gates-summed-over-part',
    'the second half of each sequence, a part of its own, has its gates offset by the sum of the first',
    hasDecay,
    ({ problem }) => {
      const sums = sumsBefore(problem);
      const all = gatesOf(problem);
      const sequences = sequencesByToken(problem);
      return withMappedGates(problem, (g, i) => {
        const token = tokenOf(all, i);
        const { first, end } = sequences[token];
        return token > first && token - first === Math.ceil((end - first) / 2) ? g + sums[i] : g;
      });
    },
  ),
  ...[2, 4].map((parts) =>
    problemFault(
      `gates-of-first-of-${parts}-parts`,
      `each of ${parts} parts of a sequence has the gates of the first`,
      hasGates,
      ({ problem }) => gatesOfFirstPart(problem, parts),
    ),
  ),
];
