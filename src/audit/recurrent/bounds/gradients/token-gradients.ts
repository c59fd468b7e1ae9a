import type { WriterContext } from '../chunk-writes.js';
import { setColumnNorms } from '../matrices.js';
import { compose } from '../roundings.js';
import type { TokenBlock } from '../token-blocks.js';
import type { BlockGradients, StateGradient } from './gradient-rows.js';

/** What a token's forward left: its state behind it; by column w, |ŵ| at most, and what the state before and behind it errs by in the norm. */
export interface TokenRecord {
  readonly state: Float64Array;
  readonly written: Float64Array;
  readonly largest: Float64Array;
  readonly normsBefore: Float64Array;
  readonly norms: Float64Array;
}

/** A token's step back. */
export interface StepBack {
  readonly block: TokenBlock;
  readonly t: number;
  readonly record: TokenRecord;
  /** Behind the token; taken to before it. */
  readonly gradient: StateGradient;
  /** dO of the block, [n, value dimension]. */
  readonly outputs: Float64Array;
  readonly rows: BlockGradients;
}

/** By column, numbers of one step back. */
function columnsOf(valueDim: number) {
  const row = () => new Float64Array(valueDim);
  return {
    /** ‖G‖, ‖P‖ and what P, the decayed state, errs by. */
    sizes: row(),
    decayedSizes: row(),
    decayed: row(),
    /** dw, what it errs by by its own roundings, and in all. */
    write: row(),
    own: row(),
    whole: row(),
    /** ‖P's gradient's error‖. */
    spread: row(),
  };
}

/** The shares and norms of one token. */
interface TokenShares {
  readonly key: number;
  readonly query: number;
  readonly strength: number;
  /** ‖I − β k kᵀ‖. */
  readonly spread: number;
  readonly largestDecay: number;
  /** The largest relative error of a decayed row. */
  readonly ofDecay: number;
}

function sharesOf(
  { k, q, beta, decay, gates, gateErrors }: TokenBlock,
  t: number,
  isDelta: boolean,
  { inputs, shape, roundings }: WriterContext,
): TokenShares {
  let [key, query, largestDecay, ofDecay] = [0, 0, 0, 0];
  for (let i = t * shape.keyDim; i < (t + 1) * shape.keyDim; i++) {
    key += k[i] ** 2;
    query += q[i] ** 2;
    largestDecay = Math.max(largestDecay, decay[i]);
    const ofGate = inputs.ofDecay(gates[i], 1, gateErrors[t]);
    ofDecay = Math.max(ofDecay, compose(ofGate, 2 * roundings.operation));
  }
  const strength = isDelta ? beta[t] : 0;
  return {
    key: Math.sqrt(key),
    query: Math.sqrt(query),
    strength,
    spread: Math.max(1, Math.abs(1 - strength * key)),
    largestDecay,
    ofDecay,
  };
}

/** Adds numbers, and the magnitudes of the shares that neighbours of so many columns have. */
class Shares {
  value = 0;
  sizes = 0;
  #share = 0;
  readonly #block: number;

  constructor(block: number) {
    this.#block = block;
  }

  clear(): void {
    this.value = 0;
    this.sizes = 0;
    this.#share = 0;
  }

  add(term: number, column: number): void {
    if (column % this.#block === 0) this.close();
    this.#share += term;
  }

  close(): void {
    this.value += this.#share;
    this.sizes += Math.abs(this.#share);
    this.#share = 0;
  }
}

/** What steps back of a problem share. */
function tokenMachine(context: WriterContext, scale: number, isDelta: boolean) {
  const { roundings, inputs, shape } = context;
  const { keyDim, valueDim } = shape;
  const { operation, of } = roundings;
  const sum = roundings.sum(Math.max(keyDim, valueDim) + 8);
  const stored = compose(4 * operation, of['state-gradient'].unit, of.state.unit);
  const vector = compose(inputs.normalised, 3 * operation);
  const columns = columnsOf(valueDim);
  const decayedState = new Float64Array(keyDim * valueDim);
  const first = new Shares(inputs.valueBlock);
  const second = new Shares(inputs.valueBlock);
  return {
    context,
    scale,
    isDelta,
    inputs,
    keyDim,
    valueDim,
    operation,
    of,
    sum,
    stored,
    vector,
    columns,
    decayedState,
    first,
    second,
  };
}

type TokenMachine = ReturnType<typeof tokenMachine>;

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
    const ofLacking = ofHeld + 2 * operation * (Math.abs(v[at]) + lacking + ofHeld);
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
export function tokenGradients(
  context: WriterContext,
  scale: number,
  isDelta: boolean,
): (step: StepBack) => void {
  const m = tokenMachine(context, scale, isDelta);
  return (step) => {
    const shares = sharesOf(step.block, step.t, isDelta, context);
    addOutput(m, step, shares.query);
    setDecayed(m, step, shares);
    setWrite(m, step, shares);
    setKey(m, step, shares);
    decay(m, step, shares);
  };
}
