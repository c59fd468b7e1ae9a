import type { WriterContext } from '../chunk-writes.js';
import { setColumnNorms } from '../matrices.js';
import { compose } from '../roundings.js';
import {
  addTimes,
  chunkMachine,
  setForward,
  type ChunkBack,
  type ChunkMachine,
} from './chunk-back.js';
import { addPairGradients } from './chunk-pairs.js';
import { setDeltaGradients, setWriteGradients } from './chunk-write-gradients.js';
import { clear } from './errored-products.js';
import type { Errored } from './gradient-rows.js';

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
export function chunkGradients(context: WriterContext, most: number): (back: ChunkBack) => void {
  const m = chunkMachine(context, most);
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
