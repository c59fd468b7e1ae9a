import { stretchesOf, type RunContext } from './context.js';
import type { InputReader } from './inputs.js';
import { tokenSteps } from './token-steps.js';

/** Tokens that are read at a time. */
export const tokensAtATime = 64;

/** Receives the output of a token, counted over [batch, tokens], good until the next. */
export type RowReceiver = (token: number, row: Float64Array) => void;

/**
 * Runs a sequence of a value head over its state; `begin` is called with the state before each of its stretches.
 */
export type SequencePass = (
  sequence: number,
  head: number,
  state: Float64Array,
  receive: RowReceiver,
  begin?: (stretch: number) => void,
) => void;

/** The recurrent form: token by token. */
export function tokenForward(context: RunContext, read: InputReader): SequencePass {
  const steps = tokenSteps(context);
  const { sequences } = context.shape;
  return (sequence, head, state, receive, begin) => {
    stretchesOf(sequences[sequence], tokensAtATime).forEach(({ first, count }, i) => {
      begin?.(i);
      const inputs = read(first, count, head);
      for (let t = 0; t < count; t++) {
        steps.runAll(state, inputs, t);
        receive(first + t, steps.out);
      }
    });
  };
}
