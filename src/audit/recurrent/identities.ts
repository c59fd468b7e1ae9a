import { decodeToFloat64, formats } from '../../formats/index.js';
import type {
  RecurrentGradientInputs,
  RecurrentProblem,
  RecurrentQuantityName,
  RecurrentShape,
  Tensor,
} from '../../problem/index.js';
import type { Combination } from './draw-errors.js';
import { byHead, recurrentRows } from './given-quantities.js';

/** Two sums over all heads that are one number in exact arithmetic. */
export interface IdentityRule {
  readonly sides: readonly [left: string, right: string];
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

/**
 * The identities that hold of what is given. The output and the final state are linear in the values and the initial state, and the
 * output is in the queries: ⟨dO, O⟩ + ⟨dS_T, S_T⟩ = ⟨dV, V⟩ + ⟨dS_0, S_0⟩, and ⟨dO, O⟩ = ⟨dQ, Q⟩ unless the kernel normalises q.
 */
export function identitiesOf(
  problem: RecurrentProblem,
  shape: RecurrentShape,
  inputs: RecurrentGradientInputs | undefined,
  given: ReadonlySet<RecurrentQuantityName>,
): readonly IdentityRule[] {
  // Mamba-2's values are no tensor, and its output has more than the state's.
  if (inputs === undefined || !given.has('out') || problem.mamba2) return [];
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
      left: ['out'],
      combination: { out, dq: negated(of('dq', q)) },
    });
  return rules;
}
