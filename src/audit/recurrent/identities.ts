import { decodeTensor, decodeToFloat64, formats } from '../../formats/index.js';
import {
  recurrentScale,
  type RecurrentGradientInputs,
  type RecurrentProblem,
  type RecurrentQuantityName,
  type RecurrentShape,
  type Tensor,
} from '../../problem/index.js';
import type { Combination } from './draw-errors.js';
import { byHead, recurrentRows } from './given-quantities.js';

/** Two sums over all heads that are one number in exact arithmetic. */
export interface IdentityRule {
  readonly sides: readonly [left: string, right: string];
  /** The quantity that is named where they differ. */
  readonly quantity: RecurrentQuantityName;
  /** The coefficients of the judged quantities in the left side less the right one. */
  readonly combination: Combination;
  /** Which of them belong to the left side. */
  readonly left: readonly RecurrentQuantityName[];
}

/** An input, as the coefficients of the quantity of its shape. */
function coefficientsOf(
  name: RecurrentQuantityName,
  tensor: Tensor,
  problem: RecurrentProblem,
  shape: RecurrentShape,
): Float64Array {
  const values = new Float64Array(tensor.data.length);
  decodeToFloat64(tensor.data, formats[tensor.format], values);
  const rows = recurrentRows(name, problem, shape);
  return rows === null ? values : byHead(values, rows);
}

function negated(values: Float64Array): Float64Array {
  return values.map((x) => -x);
}

/** The last query of each sequence and value head as the state is read with it: normalised if the problem says so, times the scale. */
function lastQuery(problem: RecurrentProblem, token: number, head: number, shape: RecurrentShape) {
  const { keyHeads, valueHeads, keyDim } = shape;
  const at = (token * keyHeads + Math.floor(head / (valueHeads / keyHeads))) * keyDim;
  const query = decodeTensor(problem.q, at, at + keyDim);
  const { normalisation } = problem;
  const square = query.reduce((sum, x) => sum + x * x, 0);
  const factor = normalisation === undefined ? 1 : 1 / Math.sqrt(square + normalisation.epsilon);
  return query.map((x) => x * factor * recurrentScale(problem));
}

/**
 * The last output is read from the final state: summed over the last values, which weigh its columns, ⟨O_T, V_T⟩ = ⟨Q_T V_Tᵀ, S_T⟩. A state
 * that a kernel hands on otherwise than its outputs read it shows here below the errors of its elements.
 */
function stateIdentity(problem: RecurrentProblem, shape: RecurrentShape): IdentityRule {
  const { batch, tokens, valueHeads, keyDim, valueDim, sequences } = shape;
  const ofOutput = new Float64Array(batch * tokens * valueHeads * valueDim);
  const ofState = new Float64Array(sequences.length * valueHeads * keyDim * valueDim);
  sequences.forEach(({ first, end }, sequence) => {
    if (end === first) return;
    for (let head = 0; head < valueHeads; head++) {
      const at = ((end - 1) * valueHeads + head) * valueDim;
      const value = decodeTensor(problem.v, at, at + valueDim);
      ofOutput.set(value, at);
      const state = (sequence * valueHeads + head) * keyDim * valueDim;
      lastQuery(problem, end - 1, head, shape).forEach((x, i) => {
        for (let c = 0; c < valueDim; c++) ofState[state + i * valueDim + c] = -x * value[c];
      });
    }
  });
  const rows = recurrentRows('out', problem, shape);
  return {
    sides: ['⟨O_T, V_T⟩', '⟨Q_T V_Tᵀ, S_T⟩'],
    quantity: 'final_state',
    left: ['out'],
    combination: { out: rows === null ? ofOutput : byHead(ofOutput, rows), final_state: ofState },
  };
}

/**
 * The identities that hold of what is given. The output and the final state are linear in the values and the initial state, and the
 * output is in the queries: ⟨dO, O⟩ + ⟨dS_T, S_T⟩ = ⟨dV, V⟩ + ⟨dS_0, S_0⟩, and ⟨dO, O⟩ = ⟨dQ, Q⟩ unless the kernel normalises q. The last
 * output is the final state's: ⟨O_T, V_T⟩ = ⟨Q_T V_Tᵀ, S_T⟩.
 */
export function identitiesOf(
  problem: RecurrentProblem,
  shape: RecurrentShape,
  inputs: RecurrentGradientInputs | undefined,
  given: ReadonlySet<RecurrentQuantityName>,
): readonly IdentityRule[] {
  // Mamba-2's values are no tensor, and its output has more than the state's.
  if (!given.has('out') || problem.mamba2) return [];
  const rules = [
    ...gradientIdentities(problem, shape, inputs, given),
    ...(given.has('final_state') ? [stateIdentity(problem, shape)] : []),
  ];
  // Sums of nothing but zeros say nothing.
  return rules.filter(({ combination }) =>
    Object.values(combination).some((coefficients) => coefficients.some((x) => x !== 0)),
  );
}

function gradientIdentities(
  problem: RecurrentProblem,
  shape: RecurrentShape,
  inputs: RecurrentGradientInputs | undefined,
  given: ReadonlySet<RecurrentQuantityName>,
): readonly IdentityRule[] {
  if (inputs === undefined) return [];
  const of = (name: RecurrentQuantityName, tensor: Tensor) =>
    coefficientsOf(name, tensor, problem, shape);
  const { q, v, initialState, normalisation } = problem;
  const { dout, dfinalState } = inputs;
  const out = of('out', dout);
  const rules: IdentityRule[] = [];
  const hasStates =
    (initialState === undefined || given.has('dinitial_state')) &&
    (dfinalState === undefined || given.has('final_state'));
  if (given.has('dv') && hasStates) {
    const left = `⟨dO, O⟩${dfinalState ? ' + ⟨dS_T, S_T⟩' : ''}`;
    const right = `⟨dV, V⟩${initialState ? ' + ⟨dS_0, S_0⟩' : ''}`;
    rules.push({
      sides: [left, right],
      quantity: 'dv',
      left: ['out', 'final_state'],
      combination: {
        out,
        dv: negated(of('dv', v)),
        ...(dfinalState ? { final_state: of('final_state', dfinalState) } : {}),
        ...(initialState ? { dinitial_state: negated(of('dinitial_state', initialState)) } : {}),
      },
    });
  }
  if (given.has('dq') && normalisation === undefined)
    rules.push({
      sides: ['⟨dO, O⟩', '⟨dQ, Q⟩'],
      quantity: 'dq',
      left: ['out'],
      combination: { out, dq: negated(of('dq', q)) },
    });
  return rules;
}
