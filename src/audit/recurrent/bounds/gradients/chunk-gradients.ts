import type { Work } from '../chunk-errors.js';
import type { ChunkWrites, ReadState, WriterContext } from '../chunk-writes.js';
import { setColumnNorms, setRowNorms } from '../matrices.js';
import { compose } from '../roundings.js';
import type { TokenBlock } from '../token-blocks.js';
import { addPairGradients } from './chunk-pairs.js';
import { clear, erroredProducts, roundErrored } from './errored-products.js';
import { errored, type BlockGradients, type Errored, type StateGradient } from './gradient-rows.js';

/** A chunk's step back. */
export interface ChunkBack {
  readonly block: TokenBlock;
  /** The chunk's forward, computed again. */
  readonly work: Work;
  readonly writes: ChunkWrites;
  readonly read: ReadState;
  /** Behind the chunk; taken to before it. */
  readonly gradient: StateGradient;
  readonly outputs: Float64Array;
  readonly rows: BlockGradients;
  /** ‖Φ‖ of the chunk at most. */
  readonly spread: number;
}

/** The matrices of a chunk's step back. */
function gradientWork(most: number, keyDim: number, valueDim: number) {
  const [ofKeys, ofValues, square] = [most * keyDim, most * valueDim, most * most];
  const state = keyDim * valueDim;
  return {
    outputs: errored(ofValues),
    intra: errored(square),
    writes: errored(ofValues),
    endKeys: errored(ofKeys),
    startQueries: errored(ofKeys),
    startKeys: errored(ofKeys),
    values: errored(ofValues),
    reads: errored(ofKeys),
    inverse: errored(square),
    state: errored(state),
    gradient: errored(state),
    next: errored(state),
    ofWrites: errored(ofValues),
    ownErrors: new Float64Array(ofValues),
    ofIntra: errored(square),
    ofQueries: errored(ofKeys),
    ofKeys: errored(ofKeys),
    ofReads: errored(ofKeys),
    ofStartKeys: errored(ofKeys),
    ofValues: errored(ofValues),
    ofInverse: errored(square),
    half: errored(square),
    ofTriangle: errored(square),
    readPart: errored(ofKeys),
    decays: new Float64Array(ofKeys),
    norms: new Float64Array(most),
    columns: new Float64Array(valueDim),
  };
}

/** to = values, with a relative error and one by element. */
function set(to: Errored, values: Float64Array, size: number, error: (at: number) => number): void {
  for (let i = 0; i < size; i++) {
    to.value[i] = values[i];
    to.error[i] = error(i);
  }
}

/** Adds an element times a factor that errs by a share. */
function addTimes(
  to: Errored,
  at: number,
  from: Errored,
  place: number,
  [factor, share]: readonly [factor: number, share: number],
): void {
  const [value, error] = [from.value[place], from.error[place]];
  to.value[at] += factor * value;
  to.error[at] += Math.abs(factor) * (error + share * (Math.abs(value) + error));
}

/** Zeros above the diagonal, or from it on. */
function keepTriangle({ value, error }: Errored, n: number, isStrict: boolean): void {
  for (let s = 0; s < n; s++) {
    const from = s * n + s + (isStrict ? 0 : 1);
    value.fill(0, from, (s + 1) * n);
    error.fill(0, from, (s + 1) * n);
  }
}

/** What steps back of a problem share. */
function chunkMachine(context: WriterContext, most: number, scale: number) {
  const { roundings, inputs, shape } = context;
  const { keyDim, valueDim } = shape;
  const { of, operation } = roundings;
  const sum = roundings.sum(Math.max(keyDim, valueDim) + most + 6);
  const largest = Math.max(most * most, most * keyDim, most * valueDim, keyDim * valueDim);
  const products = erroredProducts(largest, sum);
  const w = gradientWork(most, keyDim, valueDim);
  const isDecayed = inputs.decay !== 'none';
  const made = compose(inputs.normalised, of.operand.unit, 4 * operation);
  const rawKey = compose(inputs.key, isDecayed ? made : 0);
  const rawQuery = compose(inputs.query, isDecayed ? made : 0);
  const copied = of['state-gradient'];
  return {
    scale,
    inputs,
    keyDim,
    valueDim,
    of,
    operation,
    sum,
    products,
    w,
    made,
    rawKey,
    rawQuery,
    copied,
  };
}

type ChunkMachine = ReturnType<typeof chunkMachine>;

/** Sets what the chunk's forward has, and its errors. */
function setForward(
  m: ChunkMachine,
  { block, work, writes, read, gradient, outputs }: ChunkBack,
): void {
  const { scale, inputs, keyDim, valueDim, of, operation, w, made, rawKey, rawQuery, copied } = m;
  const { count: n, gateSums, gateErrorSums, beta, v } = block;
  const { matrices, terms } = work;
  const endErrors = (at: number) =>
    inputs.ofDecay(gateSums[(n - 1) * keyDim + (at % keyDim)], n, gateErrorSums[n - 1]);
  const least = of.operand.least;
  for (let i = 0; i < n * valueDim; i++) {
    const value = scale * outputs[i];
    w.outputs.value[i] = value;
    w.outputs.error[i] = 4 * operation * Math.abs(value);
    w.writes.value[i] = writes.exact[i];
    w.writes.error[i] = writes.largest[i] - Math.abs(writes.exact[i]);
    const strengthened = beta[Math.floor(i / valueDim)] * v[i];
    w.values.value[i] = strengthened;
    w.values.error[i] =
      2 * operation * Math.abs(strengthened) + of.operand.error(Math.abs(strengthened));
  }
  set(w.intra, matrices.intra, n * n, (i) => {
    const size = Math.abs(matrices.intra[i]) + matrices.intraError[i];
    return matrices.intraError[i] + of.intra.unit * size + (size > 0 ? of.intra.least : 0);
  });
  set(w.endKeys, matrices.endKeys, n * keyDim, (i) => {
    const share = compose(rawKey, endErrors(i), of['write-operand'].unit);
    return share * Math.abs(matrices.endKeys[i]) + least;
  });
  set(
    w.startQueries,
    matrices.startQueries,
    n * keyDim,
    (i) => compose(rawQuery, terms.decays[i]) * Math.abs(matrices.startQueries[i]) + least,
  );
  set(
    w.startKeys,
    matrices.startKeys,
    n * keyDim,
    (i) => compose(made, terms.decays[i]) * Math.abs(matrices.startKeys[i]) + least,
  );
  set(w.state, read.exact, keyDim * valueDim, (i) => {
    const before = read.magnitudes[i] - Math.abs(read.exact[i]) + read.norms[i % valueDim];
    return before + read.copyErrors[i] + read.copyShare * before;
  });
  set(
    w.gradient,
    gradient.exact,
    keyDim * valueDim,
    (i) => copied.unit * Math.abs(gradient.exact[i]) + copied.least,
  );
  const { reads, readErrors, inverse } = writes;
  if (!reads || !readErrors || !inverse) return;
  set(w.reads, reads, n * keyDim, (i) => readErrors[i]);
  set(w.inverse, matrices.inverse, n * n, (i) => inverse.error[i] + inverse.rounding[i]);
}

/** dN, dP, and what queries and keys have by the states. */
function setWriteGradients(m: ChunkMachine, { gradient, writes }: ChunkBack, n: number): void {
  const isDelta = writes.reads !== null;
  const { keyDim, valueDim, of, sum, products, w, copied } = m;
  const values = { rows: n, inner: n, columns: valueDim };
  clear(w.ofWrites);
  products.add(w.ofWrites, w.intra, w.outputs, values, { isTransposed: true });
  // A kernel of delta writes may store this part before it has the state's gradient.
  if (isDelta) roundErrored(w.ofWrites, of['write-gradient'], n * valueDim);
  products.add(w.ofWrites, w.endKeys, w.gradient, { rows: n, inner: keyDim, columns: valueDim });
  for (let i = 0; i < n * keyDim; i++)
    w.decays[i] = Math.abs(w.endKeys.value[i]) + w.endKeys.error[i];
  setRowNorms(w.norms, w.decays, keyDim, n);
  const grown = 1 + copied.unit + sum;
  for (let t = 0; t < n; t++)
    for (let c = 0; c < valueDim; c++) {
      const at = t * valueDim + c;
      const moved = w.norms[t] * gradient.norms[c];
      const extra = moved * (grown - 1);
      const size = Math.abs(w.ofWrites.value[at]) + w.ofWrites.error[at] + moved * grown;
      w.ownErrors[at] = w.ofWrites.error[at] + extra + of['write-gradient'].error(size);
      w.ofWrites.error[at] = w.ownErrors[at] + moved;
    }
  clear(w.ofIntra);
  const writesTurned = products.transposed(w.writes, n, valueDim);
  products.add(w.ofIntra, w.outputs, writesTurned, { rows: n, inner: valueDim, columns: n });
  keepTriangle(w.ofIntra, n, false);
  roundErrored(w.ofIntra, of['intra-gradient'], n * n);
  clear(w.ofQueries);
  const toKeys = { rows: n, inner: valueDim, columns: keyDim };
  products.add(w.ofQueries, w.outputs, products.transposed(w.state, keyDim, valueDim), toKeys);
  for (let i = 0; i < keyDim * valueDim; i++)
    w.gradient.error[i] += gradient.norms[i % valueDim] * (1 + copied.unit);
  clear(w.ofKeys);
  products.add(w.ofKeys, w.writes, products.transposed(w.gradient, keyDim, valueDim), toKeys);
}

/** The gradients of W, T, A and of the operands of delta writes. */
function setDeltaGradients(m: ChunkMachine, n: number): void {
  const { keyDim, valueDim, of, products, w } = m;
  const toKeys = { rows: n, inner: valueDim, columns: keyDim };
  const square = { rows: n, inner: n, columns: n };
  const back = { isTransposed: true };
  clear(w.ofReads);
  products.add(w.ofReads, w.ofWrites, products.transposed(w.state, keyDim, valueDim), toKeys, {
    sign: -1,
  });
  roundErrored(w.ofReads, of['write-gradient'], n * keyDim);
  clear(w.ofStartKeys);
  products.add(w.ofStartKeys, w.inverse, w.ofReads, { ...square, columns: keyDim }, back);
  clear(w.ofValues);
  products.add(w.ofValues, w.inverse, w.ofWrites, { ...square, columns: valueDim }, back);
  clear(w.ofInverse);
  const keysTurned = products.transposed(w.startKeys, n, keyDim);
  products.add(w.ofInverse, w.ofReads, keysTurned, { rows: n, inner: keyDim, columns: n });
  const valuesTurned = products.transposed(w.values, n, valueDim);
  products.add(w.ofInverse, w.ofWrites, valuesTurned, { rows: n, inner: valueDim, columns: n });
  keepTriangle(w.ofInverse, n, false);
  roundErrored(w.ofInverse, of['intra-gradient'], n * n);
  // −Tᵀ dT Tᵀ in either order, the first product stored.
  clear(w.half);
  products.add(w.half, w.inverse, w.ofInverse, square, back);
  roundErrored(w.half, of['intra-gradient'], n * n);
  clear(w.ofTriangle);
  products.add(w.ofTriangle, w.half, products.transposed(w.inverse, n, n), square, { sign: -1 });
  clear(w.half);
  products.add(w.half, w.ofInverse, products.transposed(w.inverse, n, n), square);
  roundErrored(w.half, of['intra-gradient'], n * n);
  clear(w.ofInverse);
  products.add(w.ofInverse, w.inverse, w.half, square, { isTransposed: true, sign: -1 });
  for (let i = 0; i < n * n; i++)
    w.ofTriangle.error[i] = Math.max(w.ofTriangle.error[i], w.ofInverse.error[i]);
  keepTriangle(w.ofTriangle, n, true);
  roundErrored(w.ofTriangle, of['intra-gradient'], n * n);
}

/** What pairs of tokens make of dq, dk and dβ. */
function setPairs(m: ChunkMachine, { block, work, rows }: ChunkBack, isDelta: boolean): void {
  const { sum, w, made } = m;
  const { terms } = work;
  for (const row of [...Object.values(rows), w.readPart]) clear(row);
  const pair = compose(made, made, sum);
  addPairGradients(
    {
      intra: w.ofIntra,
      triangle: isDelta ? w.ofTriangle : null,
      dq: rows.dq,
      written: rows.dk,
      read: w.readPart,
      dbeta: rows.dbeta,
    },
    block,
    w.decays,
    (at) => pair + (1 + pair) * terms.decays[at],
  );
}

/** Adds what the states before and behind the chunk make of dq, dk and dβ. */
function addStates(m: ChunkMachine, { block, work, rows }: ChunkBack, isDelta: boolean): void {
  const { inputs, keyDim, w, made } = m;
  const { count: n, gateSums, gateErrorSums, beta, k, decay } = block;
  const factors = new Float64Array(keyDim).fill(1);
  for (let at = n * keyDim - 1; at >= 0; at--) {
    const i = at % keyDim;
    const ofEnd = inputs.ofDecay(gateSums[(n - 1) * keyDim + i], n, gateErrorSums[n - 1]);
    addTimes(rows.dk, at, w.ofKeys, at, [factors[i], compose(made, ofEnd)]);
    factors[i] *= decay[at];
  }
  factors.fill(1);
  for (let at = 0; at < n * keyDim; at++) {
    const [t, i] = [Math.floor(at / keyDim), at % keyDim];
    factors[i] *= decay[at];
    const share = compose(made, work.terms.decays[at]);
    addTimes(rows.dq, at, w.ofQueries, at, [factors[i], share]);
    if (!isDelta) continue;
    addTimes(w.readPart, at, w.ofStartKeys, at, [beta[t] * factors[i], share]);
    addTimes(rows.dbeta, t, w.ofStartKeys, at, [k[at] * factors[i], share]);
  }
}

/** dv, dβ's part by values, and dk's two parts together, which a kernel may store in between. */
function finishRows(m: ChunkMachine, { block, rows }: ChunkBack, isDelta: boolean): void {
  const { keyDim, valueDim, of, operation, sum, w } = m;
  const { count: n, beta, v } = block;
  const { dk, dq, dv, dbeta, dg } = rows;
  const from = isDelta ? w.ofValues : w.ofWrites;
  for (let at = 0; at < n * valueDim; at++) {
    const t = Math.floor(at / valueDim);
    addTimes(dv, at, from, at, [isDelta ? beta[t] : 1, 2 * operation]);
    if (isDelta) addTimes(dbeta, t, from, at, [v[at], sum]);
  }
  const size = (x: Errored, at: number) => Math.abs(x.value[at]) + x.error[at];
  const stored = isDelta ? of.operand.unit : 0;
  for (let at = 0; at < n * keyDim; at++) {
    const terms = size(dk, at) + (isDelta ? size(w.readPart, at) : 0);
    dg.value[at] = terms;
    dk.value[at] += isDelta ? w.readPart.value[at] : 0;
    dk.error[at] += (isDelta ? w.readPart.error[at] : 0) + 2 * operation * terms;
    dk.stored[at] = stored * terms;
    dq.stored[at] = 0;
    dq.error[at] += 2 * operation * size(dq, at);
  }
}

/** dS ← e^(G_C) dS + (q e^G)ᵀ scale dO − Wᵀ dN. */
function stepBack(
  m: ChunkMachine,
  { block, work, gradient, spread }: ChunkBack,
  isDelta: boolean,
): void {
  const { inputs, keyDim, valueDim, of, operation, sum, products, w } = m;
  const { count: n, gateSums, gateErrorSums } = block;
  const { exact, norms } = gradient;
  const { endDecay } = work.matrices;
  const size = { rows: keyDim, inner: n, columns: valueDim };
  const back = { isTransposed: true };
  w.ofWrites.error.set(w.ownErrors);
  let largestShare = 0;
  for (let i = 0; i < keyDim; i++) {
    const ofDecay = inputs.ofDecay(gateSums[(n - 1) * keyDim + i], n, gateErrorSums[n - 1]);
    const share = endDecay[i] * compose(ofDecay, 2 * operation, sum);
    largestShare = Math.max(largestShare, share);
    for (let at = i * valueDim; at < (i + 1) * valueDim; at++) {
      w.next.value[at] = endDecay[i] * exact[at];
      w.next.error[at] = share * Math.abs(exact[at]);
    }
  }
  products.add(w.next, w.startQueries, w.outputs, size, back);
  let [ofReads, readSquares] = [0, 0];
  if (isDelta) {
    products.add(w.next, w.reads, w.ofWrites, size, { isTransposed: true, sign: -1 });
    for (let i = 0; i < n * keyDim; i++) {
      ofReads += w.reads.error[i] ** 2;
      readSquares += (Math.abs(w.reads.value[i]) + w.reads.error[i]) ** 2;
    }
  }
  const keys = Math.sqrt(w.norms.subarray(0, n).reduce((a, x) => a + x * x, 0));
  // Ŵ's error and the sum's times what dN has of dS's error.
  const second = (Math.sqrt(ofReads) + sum * Math.sqrt(readSquares)) * keys;
  const stored = compose(of.state.unit, operation);
  for (let at = 0; at < exact.length; at++) {
    exact[at] = w.next.value[at];
    w.next.error[at] += stored * (Math.abs(exact[at]) + w.next.error[at]) + of.state.least;
  }
  setColumnNorms(w.columns, w.next.error);
  for (let c = 0; c < valueDim; c++)
    norms[c] = (spread + largestShare + second) * norms[c] * (1 + stored) + w.columns[c];
}

/** A bounder of a chunk's gradients, which takes the state's gradient to before the chunk. */
export function chunkGradients(
  context: WriterContext,
  most: number,
  scale: number,
): (back: ChunkBack) => void {
  const m = chunkMachine(context, most, scale);
  const {} = m;
  return (back) => {
    const { count: n } = back.block;
    const isDelta = back.writes.reads !== null;
    setForward(m, back);
    setWriteGradients(m, back, n);
    if (isDelta) setDeltaGradients(m, n);
    setPairs(m, back, isDelta);
    addStates(m, back, isDelta);
    finishRows(m, back, isDelta);
    stepBack(m, back, isDelta);
  };
}
