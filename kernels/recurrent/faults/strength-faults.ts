import { decodeTensor, type Tensor } from '../../../src/formats/index.js';
import {
  recurrentShape,
  type RecurrentFamily,
  type RecurrentProblem,
} from '../../../src/problem/index.js';
import {
  problemFault,
  runFault,
  without,
  type FaultSetting,
  type RecurrentFault,
} from './fault.js';
import {
  chunkStarts,
  gathered,
  hasDecay,
  isDelta,
  mapped,
  ofLaterToken,
  ofNext,
  tokenOf,
} from './tensors.js';

/** A fault that changes the write strengths. */
function strengthFault(
  id: string,
  sentence: string,
  change: (beta: Tensor, setting: FaultSetting) => Tensor,
  appliesTo: (setting: FaultSetting) => boolean = () => true,
): RecurrentFault {
  return problemFault(
    id,
    sentence,
    (setting) => isDelta(setting) && appliesTo(setting),
    (setting) => {
      const { beta } = setting.problem;
      return { ...setting.problem, ...(beta && { beta: change(beta, setting) }) };
    },
  );
}

/** Values times their write strengths, or by them. */
function withStrengths({ v, beta }: RecurrentProblem, isDivided: boolean): Tensor {
  if (beta === undefined) return v;
  const strengths = decodeTensor(beta);
  const dim = v.shape[3];
  return mapped(v, (x, i) => {
    const strength = strengths[Math.floor(i / dim)];
    return isDivided ? x / strength : x * strength;
  });
}

const additive: Partial<Record<RecurrentFamily, RecurrentFamily>> = {
  delta: 'linear',
  'gated-delta': 'simple-gla',
  kda: 'gla',
};

/** Faults of the write strength and of what is written. */
export const strengthFaults: readonly RecurrentFault[] = [
  strengthFault('beta-missing', 'the write strength is left out, so that it is 1', (beta) =>
    mapped(beta, () => 1),
  ),
  strengthFault('beta-squared', 'the write strength acts twice', (beta) =>
    mapped(beta, (b) => b * b),
  ),
  strengthFault('beta-doubled', 'the write strength is doubled', (beta) =>
    mapped(beta, (b) => 2 * b),
  ),
  strengthFault('beta-halved', 'the write strength is halved', (beta) =>
    mapped(beta, (b) => b / 2),
  ),
  strengthFault(
    'beta-of-token-before',
    'each token has the write strength of the one before',
    (beta, { problem }) => ofLaterToken(problem, beta, -1),
  ),
  strengthFault(
    'beta-of-next-token',
    'each token has the write strength of the next',
    (beta, { problem }) => ofLaterToken(problem, beta, 1),
  ),
  strengthFault(
    'beta-of-other-head',
    'each head has the write strengths of the next',
    (beta) => ofNext(beta, 2),
    ({ problem }) => problem.v.shape[2] > 1,
  ),
  strengthFault(
    'beta-of-key-head',
    'value heads have the write strengths of the head with the number of their key head',
    (beta, { problem }) => {
      const { valueHeads, keyHeads } = recurrentShape(problem);
      const group = valueHeads / keyHeads;
      return gathered(beta, (i) => {
        const head = i % valueHeads;
        return i - head + Math.floor(head / group);
      });
    },
    ({ problem }) => problem.v.shape[2] > problem.q.shape[2],
  ),
  strengthFault(
    'beta-one-at-chunk-start',
    'the first token of each later chunk has the write strength 1',
    (beta, { problem, chunk }) => {
      const starts = chunkStarts(problem, chunk);
      return mapped(beta, (b, i) => (starts.has(tokenOf(beta, i)) ? 1 : b));
    },
    ({ problem, chunk }) => chunkStarts(problem, chunk).size > 0,
  ),
  problemFault(
    'beta-of-values-only',
    'the write strength multiplies values, and not what the state holds at the key',
    isDelta,
    ({ problem }) => ({
      ...problem,
      v: withStrengths(problem, false),
      ...(problem.beta && { beta: mapped(problem.beta, () => 1) }),
    }),
  ),
  problemFault(
    'beta-of-state-only',
    'the write strength multiplies what the state holds at the key, and not values',
    ({ problem }) =>
      problem.beta !== undefined && decodeTensor(problem.beta).every((strength) => strength !== 0),
    ({ problem }) => ({ ...problem, v: withStrengths(problem, true) }),
  ),
  problemFault(
    'write-additive',
    'values are written whatever the state holds at the key',
    isDelta,
    ({ problem }) => {
      const family = additive[problem.family] ?? problem.family;
      return { ...without(problem, 'beta'), family, v: withStrengths(problem, false) };
    },
  ),
  runFault(
    'read-before-decay',
    'a delta write reads the state before it is decayed',
    (setting) => isDelta(setting) && hasDecay(setting),
    () => ({ form: 'recurrent', order: ['read', 'decay', 'write', 'output'] }),
  ),
  runFault('decay-after-write', 'a token is decayed right behind its own write', hasDecay, () => ({
    form: 'recurrent',
    order: ['read', 'write', 'decay', 'output'],
  })),
  runFault(
    'decay-after-output',
    'a token decays the state once its output is made',
    hasDecay,
    () => ({
      form: 'recurrent',
      order: ['read', 'write', 'output', 'decay'],
    }),
  ),
  runFault(
    'output-before-write',
    'an output reads the state before its token is written',
    () => true,
    () => ({
      form: 'recurrent',
      order: ['decay', 'output', 'read', 'write'],
    }),
  ),
  runFault('output-before-decay', 'an output reads the state before its token', hasDecay, () => ({
    form: 'recurrent',
    order: ['output', 'decay', 'read', 'write'],
  })),
];
