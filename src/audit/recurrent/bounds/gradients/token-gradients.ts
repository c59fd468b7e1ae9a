import type { WriterContext } from '../chunk-writes.js';
import { setColumnNorms } from '../matrices.js';
import { compose } from '../roundings.js';
import {
  sharesOf,
  tokenMachine,
  type StepBack,
  type TokenMachine,
  type TokenShares,
} from './token-back.js';

/** G ← G + scale q dOᵀ; dq. */
function addOutput(
  m: TokenMachine,
  { block, t, record, gradient, outputs, rows }: StepBack,
  query: number,
): void {
  const { scale, inputs, keyDim, valueDim, of, sum, stored, vector, columns, first } = m;
  const { exact, norms } = gradient;
  let shared = 0;
  for (let c = 0; c < valueDim; c++)
    shared += Math.abs(outputs[t * valueDim + c]) * record.norms[c];
  for (let i = 0; i < keyDim; i++) {
    let size = 0;
    first.clear();
    const factor = scale * block.q[t * keyDim + i];
    for (let c = 0; c < valueDim; c++) {
      const at = i * valueDim + c;
      const given = outputs[t * valueDim + c];
      first.add(record.state[at] * given, c);
      size += Math.abs(record.state[at] * given);
      exact[at] += factor * given;
    }
    const at = t * keyDim + i;
    first.close();
    const error = shared + compose(sum, of['state-operand'].unit) * (size + shared);
    rows.dq.value[at] = scale * first.value;
    rows.dq.error[at] = Math.abs(scale) * error;
    rows.dq.stored[at] = Math.abs(scale) * inputs.share * (first.sizes + error);
  }
  setColumnNorms(columns.sizes, exact);
  for (let c = 0; c < valueDim; c++) {
    const added = Math.abs(scale * outputs[t * valueDim + c]) * query;
    norms[c] += vector * added + stored * (columns.sizes[c] + norms[c] + added);
  }
}

/** P = S − k wᵀ, and what its columns err by. */
function setDecayed(m: TokenMachine, { block, t, record }: StepBack, shares: TokenShares): void {
  const { keyDim, valueDim, of, columns, decayedState } = m;
  for (let i = 0; i < keyDim; i++)
    for (let c = 0; c < valueDim; c++) {
      const at = i * valueDim + c;
      decayedState[at] = record.state[at] - block.k[t * keyDim + i] * record.written[c];
    }
  setColumnNorms(columns.decayedSizes, decayedState);
  for (let c = 0; c < valueDim; c++) {
    const kept = shares.largestDecay * record.normsBefore[c];
    columns.decayed[c] =
      kept + compose(shares.ofDecay, of.state.unit) * (columns.decayedSizes[c] + kept);
  }
}

/** dw = Gᵀ k, dv and dβ. */
function setWrite(
  m: TokenMachine,
  { block, t, gradient, rows }: StepBack,
  shares: TokenShares,
): void {
  const {
    isDelta,
    inputs,
    keyDim,
    valueDim,
    operation,
    of,
    sum,
    vector,
    columns,
    decayedState,
    first,
  } = m;
  const { k, v } = block;
  const { write, own, whole, sizes, decayed, decayedSizes } = columns;
  const { key, strength } = shares;
  const factor = isDelta ? strength : 1;
  let error = 0;
  first.clear();
  for (let c = 0; c < valueDim; c++) {
    let [value, held] = [0, 0];
    for (let i = 0; i < keyDim; i++) {
      value += k[t * keyDim + i] * gradient.exact[i * valueDim + c];
      held += k[t * keyDim + i] * decayedState[i * valueDim + c];
    }
    const moved = key * gradient.norms[c];
    const ofSum = compose(vector, sum) * key * (sizes[c] + gradient.norms[c]);
    own[c] = ofSum + of['write-gradient'].error(Math.abs(value) + moved + ofSum);
    whole[c] = own[c] + moved;
    write[c] = value;
    const at = t * valueDim + c;
    const size = Math.abs(value) + whole[c];
    rows.dv.value[at] = factor * value;
    rows.dv.error[at] = Math.abs(factor) * (whole[c] + 2 * operation * size);
    const lacking = Math.abs(v[at] - held);
    const ofHeld = key * (decayed[c] + compose(vector, sum) * (decayedSizes[c] + decayed[c]));
    const made = ofHeld + 2 * operation * (Math.abs(v[at]) + lacking + ofHeld);
    // It is read as the forward pass stored it.
    const ofLacking = made + of['stored-write'].error(lacking + made);
    first.add(value * (v[at] - held), c);
    error += whole[c] * lacking + size * (ofLacking + sum * (lacking + ofLacking));
  }
  first.close();
  rows.dbeta.value[t] = first.value;
  rows.dbeta.error[t] = error + inputs.share * (first.sizes + error);
}

/** dk = G w − β P dw, the gradient of P, and dg by key dimension. */
function setKey(
  m: TokenMachine,
  { block, t, record, gradient, rows }: StepBack,
  shares: TokenShares,
): void {
  const { inputs, keyDim, valueDim, sum, stored, vector, columns, decayedState, first, second } = m;
  const { exact, norms } = gradient;
  const { write, whole, own, decayed, sizes, spread } = columns;
  const { strength, key } = shares;
  const size = Math.abs(strength);
  let shared = 0;
  for (let c = 0; c < valueDim; c++) {
    const most = Math.abs(write[c]) + whole[c];
    shared += norms[c] * record.largest[c] + size * decayed[c] * most;
    spread[c] =
      shares.spread * norms[c] +
      size * key * (own[c] + vector * most) +
      stored * (sizes[c] + norms[c] + size * key * most);
  }
  for (let i = 0; i < keyDim; i++) {
    const at = t * keyDim + i;
    const factor = strength * block.k[at];
    let [error, gate, ofGate] = [shared, 0, 0];
    first.clear();
    second.clear();
    for (let c = 0; c < valueDim; c++) {
      const place = i * valueDim + c;
      const [g, p, dw, w] = [exact[place], decayedState[place], write[c], record.written[c]];
      first.add(g * w, c);
      second.add(-strength * p * dw, c);
      const [ofG, ofP] = [Math.abs(g), Math.abs(p)];
      const most = Math.abs(dw) + whole[c];
      error += ofG * (record.largest[c] - Math.abs(w)) + size * ofP * whole[c];
      error += sum * ((ofG + norms[c]) * record.largest[c] + size * (ofP + decayed[c]) * most);
      const next = g - factor * dw;
      exact[place] = next;
      gate += next * p;
      const terms = (Math.abs(next) + spread[c]) * (ofP + decayed[c]);
      ofGate += spread[c] * (ofP + decayed[c]) + Math.abs(next) * decayed[c] + sum * terms;
    }
    first.close();
    second.close();
    const sizes = first.sizes + second.sizes + error;
    rows.dk.value[at] = first.value + second.value;
    rows.dk.error[at] = error;
    rows.dk.stored[at] = inputs.share * sizes;
    rows.dg.value[at] = gate;
    rows.dg.error[at] = ofGate;
  }
}

/** G ← D G. */
function decay(m: TokenMachine, { block, t, gradient }: StepBack, shares: TokenShares): void {
  const { keyDim, valueDim, stored, columns } = m;
  const { spread, sizes } = columns;
  const { exact, norms } = gradient;
  setColumnNorms(sizes, exact);
  for (let i = 0; i < keyDim; i++)
    for (let c = 0; c < valueDim; c++) exact[i * valueDim + c] *= block.decay[t * keyDim + i];
  const share = compose(shares.ofDecay, stored);
  for (let c = 0; c < valueDim; c++)
    norms[c] = shares.largestDecay * (spread[c] + share * (sizes[c] + spread[c]));
}

/** A bounder of a token's gradients, which takes the state's gradient to before the token. */
export function tokenGradients(context: WriterContext, isDelta: boolean): (step: StepBack) => void {
  const m = tokenMachine(context, isDelta);
  return (step) => {
    const shares = sharesOf(step.block, step.t, isDelta, context);
    addOutput(m, step, shares.query);
    setDecayed(m, step, shares);
    setWrite(m, step, shares);
    setKey(m, step, shares);
    decay(m, step, shares);
  };
}
