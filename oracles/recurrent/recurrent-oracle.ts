import type {
  Progress,
  ReferenceQuantity,
  ScaledReferenceQuantity,
} from '../attention/attention.js';
import { gateRecurrence, makesGates } from './gate-recurrence.js';
import { finishOutputs } from './mamba2/finish-outputs.js';
import { mamba2Recurrence } from './mamba2/plain-problem.js';
import { sequenceRunner } from './recurrence.js';
import type { State } from './state.js';
import {
  recurrentShape,
  type RecurrentProblem,
  type RecurrentShape,
} from '../../src/problem/index.js';

/** Exact outputs and states of linear attention, each value with a proven radius: ∞ where fp64 overflowed. */
export interface RecurrentReference {
  readonly shape: RecurrentShape;
  /** O, [batch, tokens, value heads, value dimension]; its magnitude is |scale| ‖q‖ ‖S_c‖, S_c the column of the state. */
  readonly out: ScaledReferenceQuantity;
  /** [sequences, value heads, key dimension, value dimension], after the last token of each sequence. */
  readonly finalState: ReferenceQuantity;
}

/** The receiver of the oracle's progress. */
export interface RecurrentOracleOptions {
  readonly progress?: Progress;
}

/** Writes the first `size` elements of a state, and their radii, to a final state from `at` on. */
function storeState(
  final: ReferenceQuantity,
  at: number,
  size: number,
  { elements, errors }: State,
): void {
  const dim = errors.radius.length;
  for (let i = 0; i < size; i++) {
    const radius = errors.radius[i % dim];
    final.values[at + i] = elements[i];
    final.radius[at + i] = radius < Infinity ? radius : Infinity;
  }
}

/**
 * Outputs and final states of linear attention, inputs taken as exact, each value with a proven radius. Token by token,
 *
 * S ← D S, then S ← S + k wᵀ, then o = scale · Sᵀq,
 *
 * S of [key dimension, value dimension], D the decay (1, 1 − 2^(−5 − head) for retention, or e^g), w = v for an additive write and β (v −
 * Sᵀk) for a delta write, which reads the decayed state.
 *
 * It computes in fp64. The radius of a state's column is bounded in the Euclidean norm, in which I − β k kᵀ does not
 * expand while β‖k‖² is from 0 to 2: a column's elements share it. Beyond 2, and under gates above 0, the radius grows as
 * the state may. Memory beside inputs and results is one state. Of mamba2 it is that of the values Δ x and the gates Δ A, with D x and z σ(z) behind it, each
 * with what it errs by; of gates and write strengths that a kernel makes, −exp(A_log) softplus(a + dt_bias) and σ(b), likewise.
 * @throws RequestError for tensors that do not fit together, and for numbers that are not finite or out of range
 */
export function recurrentOracle(
  problem: RecurrentProblem,
  options: RecurrentOracleOptions = {},
): RecurrentReference {
  const { mamba2 } = problem;
  if (mamba2) {
    const reference = recurrentOracle(mamba2Recurrence(problem, mamba2).plain, options);
    finishOutputs(reference.out, problem, mamba2);
    return reference;
  }
  if (makesGates(problem)) return recurrentOracle(gateRecurrence(problem), options);
  const shape = recurrentShape(problem);
  const { batch, tokens, valueHeads, keyDim, valueDim, sequences } = shape;
  const numbers = (length: number) => new Float64Array(length);
  const rows = batch * tokens * valueHeads;
  const out = {
    values: numbers(rows * valueDim),
    radius: numbers(rows * valueDim),
    magnitude: numbers(rows * valueDim),
  };
  const size = keyDim * valueDim;
  const states = sequences.length * valueHeads;
  const finalState = {
    values: numbers(states * size),
    radius: numbers(states * size),
    magnitude: null,
  };
  const run = sequenceRunner(problem, shape);
  for (let i = 0; i < states; i++) {
    const head = i % valueHeads;
    const state = run((i - head) / valueHeads, head, (token, values, radius, magnitude) => {
      const at = (token * valueHeads + head) * valueDim;
      out.values.set(values, at);
      out.radius.set(radius, at);
      out.magnitude.set(magnitude, at);
    });
    storeState(finalState, i * size, size, state);
    options.progress?.((i + 1) / states);
  }
  return { shape, out, finalState };
}
