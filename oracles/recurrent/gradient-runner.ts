import { decodeTensor } from '../../src/formats/index.js';
import type {
  RecurrentGradientInputs,
  RecurrentProblem,
  RecurrentShape,
} from '../../src/problem/index.js';
import type { ScaledReferenceQuantity } from '../attention/attention.js';
import { passDecay, passWrite, sumOfRows, takeOutput } from './adjoint-loops.js';
import {
  addOutputErrors,
  addRounding,
  boundOfSum,
  passWriteErrors,
  setDecayedErrors,
  setOutgoing,
  setProduct,
  setReadErrors,
  type SumBound,
} from './adjoint-radius.js';
import { throughNormalisation } from './normalised-gradient.js';
import { tiny } from './radius.js';
import { beginState, forgetRows, type State } from './state.js';
import { backwardWalker, type KeptToken } from './stretches.js';
import { newBackward, type Backward, type TokenGradients } from './token-gradients.js';
import { checkFinite, type TokenOperands } from './token-operands.js';

/** Receives the shares of a token in the gradients, the last token first; good until the next one. */
export type GradientReceiver = (token: number, shares: TokenGradients) => void;

/**
 * Runs sequences of a problem backward, one value head at a time, and returns the gradient of the state that each began with, good until the next
 * run.
 */
export type GradientRunner = (sequence: number, head: number, receive: GradientReceiver) => State;

function setBound({ radius, magnitude }: ScaledReferenceQuantity, bound: SumBound): void {
  radius.fill(bound.radius);
  magnitude.fill(bound.magnitude);
}

/** Sets the decayed state's errors, z and w with their radii. */
function setWrite(pass: Backward, operands: TokenOperands, kept: KeptToken) {
  const { key, value, valueError, decay, strength } = operands;
  const { decayed, missing, written, atKey, roundings } = pass;
  setDecayedErrors(decayed, kept.before.errors, decay);
  if (strength === null) {
    written.values.set(value);
    if (valueError > 0)
      for (let c = 0; c < value.length; c++)
        written.radius[c] = valueError * Math.abs(value[c]) + tiny;
    return;
  }
  setReadErrors(atKey, decayed, key.norm, roundings);
  missing.values.set(kept.missing);
  missing.radius.set(atKey.radius);
  addRounding(missing);
  setProduct(strength, missing, written);
}

/** Adds the output's share to G: dq, Gᵀk, and the share of w in dk, of which it returns the bound. */
function passOutput(pass: Backward, { query, key, decay }: TokenOperands, kept: KeptToken) {
  const { gradient, outgoing, written, atKey, squares, roundings, relative } = pass;
  const { ofQuery, ofKey } = pass;
  takeOutput(
    gradient.elements,
    kept.before.elements,
    {
      decay: decay.factors,
      key: key.elements,
      query: query.elements,
      written: written.values,
      outgoing: outgoing.values,
    },
    { ofQuery, ofKey, ofWritten: atKey.values, squares },
  );
  addOutputErrors(gradient.errors, query.norm, outgoing, roundings, squares);
  setReadErrors(atKey, gradient.errors, key.norm, roundings);
  const bound = boundOfSum(kept.after, outgoing, relative);
  throughNormalisation(query, ofQuery, bound, roundings, pass.shares.dq);
  return boundOfSum(gradient.errors, written, relative);
}

/** Passes a delta write and the decay: dv, dβ, and the share of what was read in dk, of which it returns the bound. */
function passDelta(
  pass: Backward,
  { key, decay }: TokenOperands,
  strength: number,
  before: Float64Array,
): SumBound {
  const { gradient, decayed, missing, atKey, ofRead, squares, roundings, relative } = pass;
  const { dv, dbeta } = pass.shares;
  if (dbeta) {
    let sum = 0;
    atKey.values.forEach((x, c) => (sum += x * missing.values[c]));
    dbeta.values[0] = sum;
    setBound(dbeta, boundOfSum(atKey, missing, relative));
  }
  setProduct(strength, atKey, dv);
  for (let c = 0; c < dv.values.length; c++) {
    dv.magnitude[c] = Math.abs(strength) * atKey.norm[c];
    ofRead.values[c] = -dv.values[c];
  }
  ofRead.radius.set(dv.radius);
  passWrite(
    gradient.elements,
    before,
    { decay: decay.factors, key: key.elements, ofRead: ofRead.values },
    { ofKey: pass.ofKey, ofGate: pass.ofGate, squares },
  );
  const bounds = { keyNorm: key.norm, strength };
  passWriteErrors(gradient.errors, bounds, roundings, ofRead.values, squares);
  return boundOfSum(decayed, ofRead, relative);
}

/** Passes an additive write and the decay: dv. */
function passAdditive(pass: Backward, { decay }: TokenOperands, before: Float64Array): void {
  const { gradient, atKey, ofGate } = pass;
  const { dv } = pass.shares;
  dv.values.set(atKey.values);
  dv.radius.set(atKey.radius);
  dv.magnitude.set(atKey.norm);
  if (pass.decays) passDecay(gradient.elements, before, decay.factors, ofGate);
}

/** Goes back past one token: from the gradient of the state after it to that of the state before, with the token's shares. */
function retreat(pass: Backward, operands: TokenOperands, kept: KeptToken): void {
  const { gradient, decayed, ofKey, ofGate, roundings, relative } = pass;
  const { dk, dg } = pass.shares;
  const { key, decay, strength } = operands;
  const before = kept.before.elements;
  setWrite(pass, operands, kept);
  let bound = passOutput(pass, operands, kept);
  if (strength === null) passAdditive(pass, operands, before);
  else {
    const ofRead = passDelta(pass, operands, strength, before);
    bound = {
      radius: bound.radius + ofRead.radius,
      magnitude: bound.magnitude + ofRead.magnitude,
    };
  }
  throughNormalisation(key, ofKey, bound, roundings, dk);
  if (dg) {
    if (dg.values.length === 1) dg.values[0] = sumOfRows(ofGate);
    else dg.values.set(ofGate.subarray(0, dg.values.length));
    const { radius, norm } = gradient.errors;
    setBound(dg, boundOfSum(decayed, { values: norm, radius }, relative));
  }
  forgetRows(gradient.elements, decay.factors);
  setDecayedErrors(gradient.errors, gradient.errors, decay);
}

/**
 * A runner of the problem's sequences backward. It throws a RequestError for inputs that are not finite, gates of −∞ apart.
 */
export function gradientRunner(
  problem: RecurrentProblem,
  shape: RecurrentShape,
  { dout, dfinalState }: RecurrentGradientInputs,
): GradientRunner {
  const { valueHeads, keyDim, valueDim } = shape;
  const pass = newBackward(problem, shape);
  const walk = backwardWalker(problem, shape);
  const incoming = new Float64Array(valueDim);
  return (sequence, head, receive) => {
    const state = sequence * valueHeads + head;
    beginState(pass.gradient, dfinalState, state, keyDim, 'dfinal_state');
    walk(sequence, head, (token, operands, kept) => {
      const at = (token * valueHeads + head) * valueDim;
      decodeTensor(dout, at, at + valueDim, incoming);
      checkFinite(incoming, 'dout');
      setOutgoing(pass.scale, incoming, pass.outgoing);
      retreat(pass, operands, kept);
      receive(token, pass.shares);
    });
    return pass.gradient;
  };
}
