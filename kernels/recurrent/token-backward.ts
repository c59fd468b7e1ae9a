import { stretchesOf, type RunContext } from './context.js';
import { gradientRows, type BackwardPass, type OutputGradientReader } from './gradient-rows.js';
import type { InputReader, TokenInputs } from './inputs.js';
import { dotRows } from './matrix/matrices.js';
import { tokensAtATime } from './token-forward.js';
import { tokenSteps, type TokenSteps } from './token-steps.js';
import { backwardSteps } from './token-undo.js';

/**
 * Goes through tokens again with two states: that of the forward pass, and one that is written from what the forward pass stored, v − Sᵀk of
 * delta writes. The backward pass knows the second alone.
 */
interface Replay {
  /** The state that is replayed. */
  readonly state: Float64Array;
  /** Replays a token, and keeps what it stored in row t. */
  readonly advance: (forward: Float64Array, inputs: TokenInputs, t: number) => void;
  /** Replays a token of the same stretch from `state`, with the state behind each of its operations in `behind`. */
  readonly again: (inputs: TokenInputs, t: number, behind: readonly Float64Array[]) => void;
}

function replay({ rounding, shape, isDelta, order }: RunContext, steps: TokenSteps): Replay {
  const { keyDim, valueDim } = shape;
  const state = new Float64Array(keyDim * valueDim);
  const stored = new Float64Array(tokensAtATime * valueDim);

  function again(inputs: TokenInputs, t: number, behind?: readonly Float64Array[]): void {
    order.forEach((operation, o) => {
      if (operation === 'read') steps.lack.set(stored.subarray(t * valueDim, (t + 1) * valueDim));
      else steps.run(operation, state, inputs, t);
      behind?.[o].set(state);
    });
  }

  return {
    state,
    advance(forward, inputs, t) {
      steps.runAll(forward, inputs, t);
      stored.set(steps.lack, t * valueDim);
      if (isDelta) rounding.value('stored-write', stored, t * valueDim, (t + 1) * valueDim);
      again(inputs, t);
    },
    again,
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
  const gateSums = new Float64Array(gateCount);
  const undo = backwardSteps(context, steps, gateSums);
  const { state, advance, again } = replay(context, steps);
  const forward = new Float64Array(size);
  const before = new Float64Array(tokensAtATime * size);
  const behind = order.map(() => new Float64Array(size));
  const rows = gradientRows(tokensAtATime, shape, gateCount);

  return (sequence, head, starts, stateGradient, receive) => {
    const stretches = stretchesOf(sequences[sequence], tokensAtATime);
    const inputsOf = (i: number) => read(stretches[i].first, stretches[i].count, head);
    state.set(starts[0] ?? []);
    const replayed = stretches.map(({ count }, i) => {
      const start = state.slice();
      const inputs = inputsOf(i);
      forward.set(starts[i]);
      for (let t = 0; t < count; t++) advance(forward, inputs, t);
      return start;
    });
    dotRows(gateSums, state, stateGradient);
    for (let i = stretches.length - 1; i >= 0; i--) {
      const { first, count } = stretches[i];
      const inputs = inputsOf(i);
      const outputGradient = readOutputGradient(first, count, head);
      state.set(replayed[i]);
      forward.set(starts[i]);
      for (let t = 0; t < count; t++) {
        before.set(state, t * size);
        advance(forward, inputs, t);
      }
      rows.dq.fill(0);
      rows.dk.fill(0);
      for (let t = count - 1; t >= 0; t--) {
        state.set(before.subarray(t * size, (t + 1) * size));
        again(inputs, t, behind);
        const step = { inputs, t, outputGradient, stateGradient, rows };
        for (let o = order.length - 1; o >= 0; o--) undo(order[o], behind[o], step);
      }
      receive(first, count, rows);
    }
  };
}
