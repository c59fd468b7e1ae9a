import { decodeTensor, type Tensor } from '../../../src/formats/index.js';
import {
  recurrentShape,
  type RecurrentProblem,
  type RecurrentResults,
} from '../../../src/problem/index.js';
import { problemFault, without, type FaultSetting, type RecurrentFault } from './fault.js';
import { gathered, ofLaterToken, ofNext } from './tensors.js';

const always = () => true;
const scaleOf = ({ scale, q }: RecurrentProblem) => scale ?? 1 / Math.sqrt(q.shape[3]);
const isNormalised = ({ problem }: FaultSetting) => problem.normalisation !== undefined;

/** Rows of q or k divided by what a norm's square gives. */
function divided(tensor: Tensor, divisor: (squares: number) => number): Tensor {
  const values = decodeTensor(tensor);
  const dim = tensor.shape[3];
  for (let at = 0; at < values.length; at += dim) {
    const row = values.subarray(at, at + dim);
    const by = divisor(row.reduce((sum, x) => sum + x * x, 0));
    for (let i = 0; i < dim; i++) row[i] /= by;
  }
  return { format: 'fp64', shape: tensor.shape, data: values };
}

/** Results without gradients that would need the chain rule of other queries and keys. */
const withoutKeyGradients = (results: RecurrentResults<Float64Array>) =>
  without(results, 'dq', 'dk');

/** A fault that divides q and k by other numbers than their norms, from the squares of those. */
function normFault(
  id: string,
  sentence: string,
  [ofQuery, ofKey]: readonly ((squares: number, epsilon: number) => number)[],
): RecurrentFault {
  return {
    id,
    sentence,
    isOfGradients: false,
    appliesTo: isNormalised,
    run({ problem }, execute) {
      const { normalisation, q, k, ...rest } = problem;
      const epsilon = normalisation?.epsilon ?? 0;
      const changed = {
        ...rest,
        q: divided(q, (squares) => ofQuery(squares, epsilon)),
        k: divided(k, (squares) => ofKey(squares, epsilon)),
      };
      return withoutKeyGradients(execute(changed));
    },
  };
}

const norm = (squares: number, epsilon: number) => Math.sqrt(squares + epsilon);
const normBesideEpsilon = (squares: number, epsilon: number) => Math.sqrt(squares) + epsilon;

/** The problem with a key head for each value head, taken from `keyHeadOf` it. */
export function withKeyHeads(
  problem: RecurrentProblem,
  keyHeadOf: (head: number) => number,
): RecurrentProblem {
  const { batch, tokens, valueHeads, keyHeads, keyDim } = recurrentShape(problem);
  const shape = [batch, tokens, valueHeads, keyDim];
  const spread = (tensor: Tensor): Tensor => {
    const values = decodeTensor(tensor);
    const data = new Float64Array(shape.reduce((a, b) => a * b, 1)).map((_, i) => {
      const row = Math.floor(i / keyDim);
      const from = Math.floor(row / valueHeads) * keyHeads + keyHeadOf(row % valueHeads);
      return values[from * keyDim + (i % keyDim)];
    });
    return { format: 'fp64', shape, data };
  };
  return { ...problem, q: spread(problem.q), k: spread(problem.k) };
}

/** Faults of q, k and v: of other tokens or heads. */
const placeFaults: readonly RecurrentFault[] = [
  problemFault(
    'queries-and-keys-exchanged',
    'queries and keys are exchanged',
    always,
    ({ problem }) => ({
      ...problem,
      q: problem.k,
      k: problem.q,
    }),
  ),
  ...(
    [
      ['q', 'queries'],
      ['k', 'keys'],
      ['v', 'values'],
    ] as const
  ).flatMap(([name, words]) => [
    problemFault(
      `${words}-of-token-before`,
      `each token has the ${words} of the one before`,
      always,
      ({ problem }) => ({ ...problem, [name]: ofLaterToken(problem, problem[name], -1) }),
    ),
    problemFault(
      `${words}-of-other-head`,
      `each head has the ${words} of the next`,
      ({ problem }) => problem[name].shape[2] > 1,
      ({ problem }) => ({ ...problem, [name]: ofNext(problem[name], 2) }),
    ),
  ]),
  problemFault(
    'key-dimensions-cut',
    'key dimensions behind the last whole 16 are left out',
    ({ problem }) => problem.q.shape[3] > 16 && problem.q.shape[3] % 16 > 0,
    ({ problem }) => {
      const dim = problem.q.shape[3];
      const cut = (tensor: Tensor) =>
        gathered(tensor, (i) => (i % dim < dim - (dim % 16) ? i : null));
      return { ...problem, q: cut(problem.q), k: cut(problem.k) };
    },
  ),
  {
    id: 'key-heads-interleaved',
    sentence: 'value heads take key heads in turn instead of by groups',
    isOfGradients: false,
    appliesTo: ({ problem }) => problem.q.shape[2] > 1 && problem.v.shape[2] > problem.q.shape[2],
    run: ({ problem }, execute) =>
      withoutKeyGradients(execute(withKeyHeads(problem, (head) => head % problem.q.shape[2]))),
  },
];

/** Faults of the scale and of normalisation. */
const factorFaults: readonly RecurrentFault[] = [
  problemFault(
    'scale-missing',
    'the scale is left out, so that it is 1',
    always,
    ({ problem }) => ({
      ...problem,
      scale: 1,
    }),
  ),
  problemFault('scale-twice', 'the scale acts twice', always, ({ problem }) => ({
    ...problem,
    scale: scaleOf(problem) ** 2,
  })),
  problemFault(
    'scale-of-value-dimension',
    'the scale is 1/√(value dimension)',
    always,
    ({ problem }) => ({
      ...problem,
      scale: 1 / Math.sqrt(problem.v.shape[3]),
    }),
  ),
  problemFault(
    'scale-of-whole-key-dimension',
    'the scale is 1/(key dimension)',
    // Else this is the scale acting twice.
    ({ problem }) => problem.scale !== undefined,
    ({ problem }) => ({
      ...problem,
      scale: 1 / problem.q.shape[3],
    }),
  ),
  normFault('normalisation-missing', 'queries and keys are not normalised', [() => 1, () => 1]),
  normFault('normalisation-of-queries-only', 'keys are not normalised', [norm, () => 1]),
  normFault('normalisation-of-keys-only', 'queries are not normalised', [() => 1, norm]),
  normFault('epsilon-beside-norm', 'epsilon is added to the norm instead of to its square', [
    normBesideEpsilon,
    normBesideEpsilon,
  ]),
  problemFault(
    'epsilon-of-other-size',
    'epsilon is 1e-5, or 1e-6 where 1e-5 is right',
    isNormalised,
    ({ problem }) => ({
      ...problem,
      normalisation: { epsilon: problem.normalisation?.epsilon === 1e-5 ? 1e-6 : 1e-5 },
    }),
  ),
];

/** Faults of inputs: of their places, of the scale and of normalisation. */
export const inputFaults: readonly RecurrentFault[] = [...factorFaults, ...placeFaults];
