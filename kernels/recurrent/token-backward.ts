import { stretchesOf, type RunContext, type TokenOperation } from './context.js';
import {
  gradientRows,
  type BackwardPass,
  type GradientRows,
  type OutputGradientReader,
} from './gradient-rows.js';
import type { InputReader, TokenInputs } from './inputs.js';
import { decayRows, dot, product, productWithTransposed } from './matrices.js';
import { tokensAtATime } from './token-forward.js';
import { tokenSteps, type TokenSteps } from './token-steps.js';

/** What a step back needs beside the state. */
interface StepBack {
  readonly inputs: TokenInputs;
  readonly t: number;
  readonly outputGradient: Float64Array;
  readonly stateGradient: Float64Array;
  readonly rows: GradientRows;
}

/** Undoes an operation of a token, whose vectors `steps` has; `state` is that right behind it. */
type BackwardSteps = (operation: TokenOperation, state: Float64Array, step: StepBack) => void;

/** The gradients of a token's operations, one at a time and in reverse. */
function backwardSteps(context: RunContext, steps: TokenSteps): BackwardSteps {
  const { rounding, scale, isDelta, gateCount, shape } = context;
  const { keyDim, valueDim } = shape;
  const ofWrite = new Float64Array(valueDim);
  const ofRead = new Float64Array(valueDim);
  const ofKey = new Float64Array(keyDim);
  const row = (rows: Float64Array, t: number, dim: number) => rows.subarray(t * dim, (t + 1) * dim);

  function addToKey(rows: GradientRows, t: number, state: Float64Array, read: Float64Array) {
    productWithTransposed(ofKey, read, state, [1, valueDim, keyDim]);
    rounding.value('sum', ofKey, 0, keyDim);
    const dk = row(rows.dk, t, keyDim);
    for (let i = 0; i < keyDim; i++) dk[i] += ofKey[i];
  }

  function undoOutput(state: Float64Array, { inputs, t, stateGradient, ...step }: StepBack) {
    const scaled = row(step.outputGradient, t, valueDim).map((x) => x * scale);
    const dq = row(step.rows.dq, t, keyDim);
    productWithTransposed(dq, scaled, state, [1, valueDim, keyDim]);
    rounding.value('sum', dq, 0, keyDim);
    product(stateGradient, row(inputs.q, t, keyDim), scaled, [keyDim, 1, valueDim], true);
    rounding.value('state', stateGradient, 0, stateGradient.length);
  }

  function undoWrite({ inputs, t, rows, stateGradient }: StepBack) {
    product(ofWrite, row(inputs.k, t, keyDim), stateGradient, [1, keyDim, valueDim]);
    rounding.value('sum', ofWrite, 0, valueDim);
    rounding.value('write-gradient', ofWrite, 0, valueDim);
    addToKey(rows, t, stateGradient, steps.write);
    const dv = row(rows.dv, t, valueDim);
    const strength = inputs.beta[t];
    rows.dbeta[t] = 0;
    for (let c = 0; c < valueDim; c++) {
      dv[c] = strength * ofWrite[c];
      if (!isDelta) continue;
      ofRead[c] = -dv[c];
      rows.dbeta[t] += ofWrite[c] * (inputs.v[t * valueDim + c] - steps.read[c]);
    }
    if (isDelta) rounding.value('sum', rows.dbeta, t, t + 1);
  }

  function undoRead(state: Float64Array, { inputs, t, rows, stateGradient }: StepBack) {
    if (!isDelta) return;
    addToKey(rows, t, state, ofRead);
    product(stateGradient, row(inputs.k, t, keyDim), ofRead, [keyDim, 1, valueDim], true);
    rounding.value('state', stateGradient, 0, stateGradient.length);
  }

  function undoDecay(state: Float64Array, { t, rows, stateGradient }: StepBack) {
    if (gateCount === 0) return;
    const dg = row(rows.dg, t, gateCount);
    const size = state.length / gateCount;
    for (let i = 0; i < gateCount; i++) dg[i] = dot(state, i * size, stateGradient, i * size, size);
    rounding.value('sum', dg, 0, gateCount);
    decayRows(stateGradient, steps.decay, valueDim);
    rounding.value('state', stateGradient, 0, stateGradient.length);
  }

  return (operation, state, step) => {
    if (operation === 'output') undoOutput(state, step);
    else if (operation === 'write') undoWrite(step);
    else if (operation === 'read') undoRead(state, step);
    else undoDecay(state, step);
  };
}

/** The backward pass of the recurrent form; it computes the states of a stretch again, and keeps one for each of its tokens. */
export function tokenBackward(
  context: RunContext,
  read: InputReader,
  readOutputGradient: OutputGradientReader,
): BackwardPass {
  const { shape, order, gateCount } = context;
  const { keyDim, valueDim, sequences } = shape;
  const size = keyDim * valueDim;
  const steps = tokenSteps(context);
  const undo = backwardSteps(context, steps);
  const state = new Float64Array(size);
  const before = new Float64Array(tokensAtATime * size);
  const behind = order.map(() => new Float64Array(size));
  const rows = gradientRows(tokensAtATime, shape, gateCount);

  return (sequence, head, starts, stateGradient, receive) => {
    const stretches = stretchesOf(sequences[sequence], tokensAtATime);
    for (let i = stretches.length - 1; i >= 0; i--) {
      const { first, count } = stretches[i];
      const inputs = read(first, count, head);
      const outputGradient = readOutputGradient(first, count, head);
      state.set(starts[i]);
      for (let t = 0; t < count; t++) {
        before.set(state, t * size);
        steps.runAll(state, inputs, t);
      }
      rows.dk.fill(0);
      for (let t = count - 1; t >= 0; t--) {
        state.set(before.subarray(t * size, (t + 1) * size));
        order.forEach((operation, o) => {
          steps.run(operation, state, inputs, t);
          behind[o].set(state);
        });
        const step = { inputs, t, outputGradient, stateGradient, rows };
        for (let o = order.length - 1; o >= 0; o--) undo(order[o], behind[o], step);
      }
      receive(first, count, rows);
    }
  };
}
