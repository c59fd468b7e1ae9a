import { decodeTensor } from '../../src/formats/index.js';
import type { Tensor } from '../../src/formats/index.js';
import {
  recurrentQuantityShape,
  type RecurrentGradientInputs,
  type RecurrentResults,
  type RecurrentShape,
} from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import type { RunContext } from './context.js';
import type { GradientReceiver, GradientRows, OutputGradientReader } from './gradient-rows.js';
import { keyHeadOf } from './inputs.js';
import { dot } from './matrix/matrices.js';

/** Turns the gradients of normalised rows into those of the rows themselves, (dy − y (y·dy)) / √(Σx² + epsilon), in place. */
function undoNormalisation(gradients: Float64Array, tensor: Tensor, epsilon: number): void {
  const dim = tensor.shape[3];
  const row = new Float64Array(dim);
  for (let at = 0; at < gradients.length; at += dim) {
    decodeTensor(tensor, at, at + dim, row);
    const factor = 1 / Math.sqrt(dot(row, 0, row, 0, dim) + epsilon);
    const along = dot(row, 0, gradients, at, dim) * factor * factor;
    for (let i = 0; i < dim; i++) gradients[at + i] = factor * (gradients[at + i] - row[i] * along);
  }
}

/** Gradients as they come together. */
export interface GradientResults {
  /** Takes the rows of a value head, and adds them to those of the heads that share its key. */
  readonly receiverOf: (head: number) => GradientReceiver;
  readonly setInitial: (index: number, stateGradient: Float64Array) => void;
  /** All of them, once every head is done. */
  readonly finish: () => RecurrentResults<Float64Array>;
}

/** Gradients in the shapes of `recurrentQuantityShape`. */
export function gradientResults(context: RunContext): GradientResults {
  const { problem, shape, rounding, gateCount } = context;
  const { valueHeads, keyHeads, keyDim, valueDim } = shape;
  const zeros = (name: 'dq' | 'dk' | 'dv' | 'dg' | 'dbeta' | 'dinitial_state') => {
    const sizes = recurrentQuantityShape(name, problem, shape);
    return sizes && new Float64Array(sizes.reduce((a, b) => a * b, 1));
  };
  const [dq, dk, dv] = ['dq', 'dk', 'dv'].map((name) => zeros(name as 'dq') as Float64Array);
  const [dg, dbeta, initial] = [zeros('dg'), zeros('dbeta'), zeros('dinitial_state')];
  const epsilon = problem.normalisation?.epsilon;
  // What heads share, or what normalisation reads, is stored before it is read again.
  const isStored = valueHeads > keyHeads || epsilon !== undefined;

  function store(name: string, to: Float64Array | null, at: number, row: Float64Array) {
    if (to === null) return;
    to.set(row, at * row.length);
    rounding.output(name, to, at * row.length, (at + 1) * row.length);
  }

  function add(name: 'dq' | 'dk', rows: GradientRows, t: number, at: number) {
    const row = rows[name].subarray(t * keyDim, (t + 1) * keyDim);
    if (isStored) rounding.output(name, row, 0, keyDim);
    const to = name === 'dq' ? dq : dk;
    for (let i = 0; i < keyDim; i++) to[at * keyDim + i] += row[i];
  }

  return {
    receiverOf: (head) => (first, count, rows) => {
      for (let t = 0; t < count; t++) {
        const at = (first + t) * valueHeads + head;
        const atKey = (first + t) * keyHeads + keyHeadOf(shape, head);
        add('dq', rows, t, atKey);
        add('dk', rows, t, atKey);
        store('dv', dv, at, rows.dv.subarray(t * valueDim, (t + 1) * valueDim));
        store('dg', dg, at, rows.dg.subarray(t * gateCount, (t + 1) * gateCount));
        store('dbeta', dbeta, at, rows.dbeta.subarray(t, t + 1));
      }
    },
    setInitial: (index, stateGradient) => store('dinitial_state', initial, index, stateGradient),
    finish() {
      for (const [name, values, tensor] of [
        ['dq', dq, problem.q],
        ['dk', dk, problem.k],
      ] as const) {
        if (epsilon !== undefined) undoNormalisation(values, tensor, epsilon);
        rounding.output(name, values, 0, values.length);
      }
      return {
        dq,
        dk,
        dv,
        ...(dg && { dg }),
        ...(dbeta && { dbeta }),
        ...(initial && { dinitial_state: initial }),
      };
    },
  };
}

/** A reader of dO. @throws RequestError for tensors of other shapes than the problem's */
export function outputGradientReader(
  { dout, dfinalState }: RecurrentGradientInputs,
  { batch, tokens, sequences, valueHeads, keyDim, valueDim }: RecurrentShape,
  most: number,
): OutputGradientReader {
  const check = (name: string, given: Tensor, wanted: readonly number[]) => {
    if (given.shape.join() !== wanted.join())
      throw new RequestError(
        `${name} has shape [${given.shape.join(', ')}]; give it [${wanted.join(', ')}]`,
      );
  };
  check('dout', dout, [batch, tokens, valueHeads, valueDim]);
  if (dfinalState)
    check('dfinal_state', dfinalState, [sequences.length, valueHeads, keyDim, valueDim]);
  const rows = new Float64Array(most * valueDim);
  return (first, count, head) => {
    for (let t = 0; t < count; t++) {
      const at = ((first + t) * valueHeads + head) * valueDim;
      const to = rows.subarray(t * valueDim, (t + 1) * valueDim);
      decodeTensor(dout, at, at + valueDim, to);
    }
    return rows;
  };
}
