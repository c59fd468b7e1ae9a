import type { Problem } from '../../../src/problem/index.js';
import { normalProblem, normalTensor, type seededRandom } from '../features/index.js';
import { faulty, type FaultyBackward } from './fault.js';

type Where = Pick<FaultyBackward, 'touches' | 'example'>;

/** Two batch entries of 70 queries and 90 keys in two heads. */
function twoEntries(random: ReturnType<typeof seededRandom>): Problem {
  return normalProblem(random, { batch: 2, heads: 2, kvHeads: 1, queries: 70, keys: 90 });
}

const withSink: Where = {
  touches: ({ sink, q }) => sink !== undefined && q.shape[0] > 1,
  example: (random) => ({
    ...twoEntries(random),
    sink: { logits: normalTensor(random, 'fp32', [2], 2), inLse: true },
  }),
};

/** Whether batch entries share a bias, so that its gradient is a sum over them. */
function sharesBias({ bias, q }: Problem): boolean {
  return bias !== undefined && q.shape[0] > 1 && (bias.shape.length < 4 || bias.shape[0] === 1);
}

const withBias: Where = {
  touches: sharesBias,
  example: (random) => ({
    ...twoEntries(random),
    softcap: 4,
    bias: normalTensor(random, 'bf16', [2, 70, 90], 1),
  }),
};

/** Faults of the gradients of biases and of sinks, which leave dQ, dK and dV as they are. */
export const sharedFaults: readonly FaultyBackward[] = [
  faulty(
    [
      'sink-of-first-entry',
      'NVIDIA/TransformerEngine #3249',
      'the gradient of sinks reads the row sums of the first batch entry for all',
    ],
    ['dsink'],
    withSink,
    () => ({ entryOf: (of, entry) => (of === 'dsink' ? 0 : entry) }),
  ),
  faulty(
    ['bias-of-last-entry', 'damage', 'the gradient of a bias is not summed over the batch'],
    ['dbias'],
    withBias,
    // A bias of each entry has a gradient of each, which there is nothing to sum for.
    (_, problem) => ({
      entryOf: (of, entry) =>
        of === 'dbias' && sharesBias(problem) && entry + 1 < problem.q.shape[0] ? null : entry,
    }),
  ),
  faulty(
    ['bias-scaled', 'damage', 'the gradient of a bias is multiplied by the scale'],
    ['dbias'],
    { ...withBias, touches: ({ bias, scale }) => bias !== undefined && scale !== 1 },
    (_, { scale }) => ({ ofBias: ({ derivative }) => derivative * Math.fround(scale) }),
  ),
  faulty(
    [
      'bias-capped',
      'damage',
      "the gradient of a bias, which is added behind the softcap, has the softcap's slope",
    ],
    ['dbias'],
    {
      ...withBias,
      touches: ({ bias, softcap }) => bias !== undefined && softcap !== null,
    },
    () => ({ ofBias: ({ derivative, slope }) => derivative * slope }),
  ),
];
