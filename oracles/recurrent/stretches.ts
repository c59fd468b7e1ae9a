import type { RecurrentProblem, RecurrentShape } from '../../src/problem/index.js';
import { stateWalk } from './recurrence.js';
import { zeroErrors } from './radius.js';
import { copyErrors, copyState, forgetRows, paddedKeyDim, zeroState, type State } from './state.js';
import { tokenReader, type TokenOperands } from './token-operands.js';

/** The forward pass around one token, kept for the backward pass. */
export interface KeptToken {
  /** The state before the token, with forgotten rows at 0. */
  readonly before: State;
  /** Errors of the state after it. */
  readonly after: State['errors'];
  /** z = v − Sᵀk as computed, for a delta write. */
  readonly missing: Float64Array;
}

/** Visits the tokens of a sequence and value head from the last to the first. */
export type BackwardWalker = (
  sequence: number,
  head: number,
  visit: (token: number, operands: TokenOperands, kept: KeptToken) => void,
) => void;

/** An array that grows as it is asked for elements, and is used again for the next sequence. */
function growing<T>(make: () => T): (at: number) => T {
  const elements: T[] = [];
  return (at) => {
    while (elements.length <= at) elements.push(make());
    return elements[at];
  };
}

/**
 * A walker that runs the forward pass twice: once to keep the state before each stretch of √T tokens, and again stretch by stretch from the last,
 * to keep the states within. It holds some 2√T states of the longest sequence.
 */
export function backwardWalker(problem: RecurrentProblem, shape: RecurrentShape): BackwardWalker {
  const readToken = tokenReader(problem, shape, paddedKeyDim(shape));
  const walk = stateWalk(problem, shape);
  const { state } = walk;
  const starts = growing(() => zeroState(shape));
  const tokens = growing((): KeptToken => ({
    before: zeroState(shape),
    after: zeroErrors(shape.valueDim),
    missing: new Float64Array(shape.valueDim),
  }));

  function keep(token: number, head: number, { before, after, missing }: KeptToken): void {
    const operands = readToken(token, head);
    copyState(before, state);
    forgetRows(before.elements, operands.decay.factors);
    walk.advance(operands);
    copyErrors(after, state.errors);
    missing.set(walk.missing);
  }

  return (sequence, head, visit) => {
    const { first, end } = shape.sequences[sequence];
    const stretch = Math.max(1, Math.ceil(Math.sqrt(end - first)));
    walk.begin(sequence, head);
    for (let token = first; token < end; token++) {
      if ((token - first) % stretch === 0) copyState(starts((token - first) / stretch), state);
      walk.advance(readToken(token, head));
    }
    for (let at = Math.ceil((end - first) / stretch) - 1; at >= 0; at--) {
      const start = first + at * stretch;
      const count = Math.min(stretch, end - start);
      copyState(state, starts(at));
      for (let i = 0; i < count; i++) keep(start + i, head, tokens(i));
      for (let i = count - 1; i >= 0; i--) visit(start + i, readToken(start + i, head), tokens(i));
    }
  };
}
