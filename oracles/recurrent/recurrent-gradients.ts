import { RequestError } from '../../src/request-error.js';
import {
  checkRecurrentGradientInputs,
  recurrentQuantityShape,
  recurrentShape,
  type RecurrentGradientInputs,
  type RecurrentProblem,
  type RecurrentQuantityName,
  type RecurrentShape,
} from '../../src/problem/index.js';
import type { ScaledReferenceQuantity } from '../attention/attention.js';
import { largestValueDim } from './adjoint-radius.js';
import { makesGates } from './gate-recurrence.js';
import { gradientRunner } from './gradient-runner.js';
import { chainGradients } from './mamba2/chain-gradients.js';
import { mamba2Recurrence } from './mamba2/plain-problem.js';
import type { RecurrentOracleOptions } from './recurrent-oracle.js';
import type { State } from './state.js';
import type { RecurrentGradients } from './token-gradients.js';

/** Exact gradients of linear attention, each value with a proven radius: ∞ where fp64 overflowed. */
export interface RecurrentGradientReference {
  readonly shape: RecurrentShape;
  /** Their magnitudes are the sums of norms of columns that docs/theory/recurrent-oracle.md gives, alike for elements of one vector. */
  readonly quantities: RecurrentGradients;
}

const u = 2 ** -53;

/** Adds a share to the elements from `at` on; the first one is taken as it is. */
function addShare(
  sum: ScaledReferenceQuantity,
  at: number,
  share: ScaledReferenceQuantity,
  isFirst: boolean,
): void {
  for (let i = 0; i < share.values.length; i++) {
    const value = sum.values[at + i] + share.values[i];
    const rounding = isFirst ? 0 : sum.radius[at + i] + u * Math.abs(value);
    const radius = (rounding + share.radius[i]) * (1 + 2 ** -50);
    sum.values[at + i] = value;
    sum.radius[at + i] = radius < Infinity ? radius : Infinity;
    sum.magnitude[at + i] += share.magnitude[i];
  }
}

/** Writes the first rows of a state's gradient to the elements from `at` on. */
function storeGradient(
  { values, radius, magnitude }: ScaledReferenceQuantity,
  at: number,
  size: number,
  { elements, errors }: State,
): void {
  const dim = errors.radius.length;
  values.set(elements.subarray(0, size), at);
  for (let i = 0; i < size; i++) {
    const bound = errors.radius[i % dim];
    radius[at + i] = bound < Infinity ? bound : Infinity;
    magnitude[at + i] = errors.norm[i % dim];
  }
}

/** Gradients of zeros for the quantities that the problem has. */
function zeroGradients(problem: RecurrentProblem, shape: RecurrentShape): RecurrentGradients {
  const zeros = (lengths: readonly number[]): ScaledReferenceQuantity => {
    const length = lengths.reduce((a, b) => a * b, 1);
    const numbers = () => new Float64Array(length);
    return { values: numbers(), radius: numbers(), magnitude: numbers() };
  };
  const shapeOf = (name: RecurrentQuantityName) => recurrentQuantityShape(name, problem, shape);
  const [dg, dbeta, initial] = [shapeOf('dg'), shapeOf('dbeta'), shapeOf('dinitial_state')];
  return {
    dq: zeros(shapeOf('dq') ?? []),
    dk: zeros(shapeOf('dk') ?? []),
    dv: zeros(shapeOf('dv') ?? []),
    ...(dg && { dg: zeros(dg) }),
    ...(dbeta && { dbeta: zeros(dbeta) }),
    ...(initial && { dinitial_state: zeros(initial) }),
  };
}

/**
 * Gradients of ⟨dO, O⟩ + ⟨dS_T, S_T⟩ of linear attention as {@link recurrentOracle} defines it, inputs taken as exact, each value with a proven
 * radius. Gradients of q and k are of the tensors as given, also where the recurrence normalises them, and are summed over the value heads that
 * share a key head; those of gates are of the logarithms.
 *
 * It computes in fp64, token by token backward, with radii of the columns of the state and of its gradient in the Euclidean norm; both grow as
 * {@link recurrentOracle} says. The forward pass runs twice, since only every √T-th state is kept. Memory beside inputs and results is some 2√T states of
 * the longest sequence, of T tokens.
 * @throws RequestError for tensors that do not fit together, and for numbers that are not finite or out of range
 */
export function recurrentGradients(
  problem: RecurrentProblem,
  inputs: RecurrentGradientInputs,
  options: RecurrentOracleOptions = {},
): RecurrentGradientReference {
  const { mamba2 } = problem;
  if (mamba2?.z)
    throw new RequestError('there are no exact gradients beside a gate z; leave z out');
  if (makesGates(problem))
    throw new RequestError(
      'there are no exact gradients beside A_log, b or gates of base 2; give g and beta',
    );
  if (mamba2) {
    const { plain, steps } = mamba2Recurrence(problem, mamba2);
    const { shape: sizes, quantities: ofPlain } = recurrentGradients(plain, inputs, options);
    const chain = { problem, inputs: mamba2, plain, steps };
    return { shape: sizes, quantities: chainGradients(chain, ofPlain, inputs) };
  }
  const shape = recurrentShape(problem);
  checkRecurrentGradientInputs(inputs, shape);
  const { keyHeads, valueHeads, keyDim, valueDim, sequences } = shape;
  if (valueDim > largestValueDim)
    throw new RequestError(
      `the value dimension is ${valueDim}; the oracle of gradients takes up to ${largestValueDim}`,
    );
  const quantities = zeroGradients(problem, shape);
  const run = gradientRunner(problem, shape, inputs);
  const group = valueHeads / keyHeads;
  const states = sequences.length * valueHeads;
  for (let i = 0; i < states; i++) {
    const head = i % valueHeads;
    const keyHead = Math.floor(head / group);
    const gradient = run((i - head) / valueHeads, head, (token, shares) => {
      const ofKey = (token * keyHeads + keyHead) * keyDim;
      const row = token * valueHeads + head;
      addShare(quantities.dq, ofKey, shares.dq, head % group === 0);
      addShare(quantities.dk, ofKey, shares.dk, head % group === 0);
      for (const name of ['dv', 'dg', 'dbeta'] as const) {
        const [sum, share] = [quantities[name], shares[name]];
        if (sum && share) addShare(sum, row * share.values.length, share, true);
      }
    });
    const { dinitial_state: initial } = quantities;
    const size = keyDim * valueDim;
    if (initial) storeGradient(initial, i * size, size, gradient);
    options.progress?.((i + 1) / states);
  }
  return { shape, quantities };
}
