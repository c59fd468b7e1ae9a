import { rowsAtATime } from './state-loops.js';

/**
 * The loops of the backward pass over the gradient of a state, [key dimension, value dimension], beside the state before the token, in
 * which forgotten rows are 0. As in the loops over states, a term of a sum over the key dimension passes at most `roundingsOf` roundings; one of a
 * sum over the value dimension passes at most that dimension.
 */

/** A token's operands in {@link takeOutput}. */
export interface OutputStep {
  readonly decay: Float64Array;
  readonly key: Float64Array;
  readonly query: Float64Array;
  /** w, by value dimension. */
  readonly written: Float64Array;
  /** a = scale · dO, by value dimension. */
  readonly outgoing: Float64Array;
}

/** Sums of {@link takeOutput}, by key dimension or by value dimension. */
export interface OutputSums {
  readonly ofQuery: Float64Array;
  readonly ofKey: Float64Array;
  readonly ofWritten: Float64Array;
  readonly squares: Float64Array;
}

/**
 * G += q aᵀ; ofQuery = S a with S_i = d_i before_i + k_i w, rounded as the forward pass rounds it; ofKey = G w, ofWritten = Gᵀk, squares = Σ_i
 * G_i².
 */
export function takeOutput(
  gradient: Float64Array,
  before: Float64Array,
  { decay, key, query, written, outgoing }: OutputStep,
  { ofQuery, ofKey, ofWritten, squares }: OutputSums,
): void {
  const dim = written.length;
  ofWritten.fill(0);
  squares.fill(0);
  for (let i = 0; i < key.length; i += rowsAtATime) {
    const [k0, k1, k2, k3] = [key[i], key[i + 1], key[i + 2], key[i + 3]];
    const [d0, d1, d2, d3] = [decay[i], decay[i + 1], decay[i + 2], decay[i + 3]];
    const [q0, q1, q2, q3] = [query[i], query[i + 1], query[i + 2], query[i + 3]];
    const first = i * dim;
    const second = first + dim;
    const third = second + dim;
    const fourth = third + dim;
    let [x0, x1, x2, x3] = [0, 0, 0, 0];
    let [y0, y1, y2, y3] = [0, 0, 0, 0];
    for (let c = 0; c < dim; c++) {
      const w = written[c];
      const a = outgoing[c];
      x0 += (d0 * before[first + c] + k0 * w) * a;
      x1 += (d1 * before[second + c] + k1 * w) * a;
      x2 += (d2 * before[third + c] + k2 * w) * a;
      x3 += (d3 * before[fourth + c] + k3 * w) * a;
      const g0 = gradient[first + c] + q0 * a;
      const g1 = gradient[second + c] + q1 * a;
      const g2 = gradient[third + c] + q2 * a;
      const g3 = gradient[fourth + c] + q3 * a;
      gradient[first + c] = g0;
      gradient[second + c] = g1;
      gradient[third + c] = g2;
      gradient[fourth + c] = g3;
      y0 += g0 * w;
      y1 += g1 * w;
      y2 += g2 * w;
      y3 += g3 * w;
      ofWritten[c] += k0 * g0 + k1 * g1 + (k2 * g2 + k3 * g3);
      squares[c] += g0 * g0 + g1 * g1 + (g2 * g2 + g3 * g3);
    }
    ofQuery.set([x0, x1, x2, x3], i);
    ofKey.set([y0, y1, y2, y3], i);
  }
}

/** A token's operands in {@link passWrite}. */
export interface WriteStep {
  readonly decay: Float64Array;
  readonly key: Float64Array;
  /** The gradient of what the decayed state holds at the key, by value dimension. */
  readonly ofRead: Float64Array;
}

/** Sums of {@link passWrite}, by key dimension or by value dimension. */
export interface WriteSums {
  /** Is added to. */
  readonly ofKey: Float64Array;
  readonly ofGate: Float64Array;
  readonly squares: Float64Array;
}

/**
 * Passes a delta write and the decay: H = G + k ofReadᵀ, then G_i = d_i H_i. With P_i = d_i before_i, the decayed state, ofKey += P ofRead and ofGate_i = Σ_c
 * P_ic H_ic; squares = Σ_i H_i².
 */
export function passWrite(
  gradient: Float64Array,
  before: Float64Array,
  { decay, key, ofRead }: WriteStep,
  { ofKey, ofGate, squares }: WriteSums,
): void {
  const dim = ofRead.length;
  squares.fill(0);
  for (let i = 0; i < key.length; i += rowsAtATime) {
    const [k0, k1, k2, k3] = [key[i], key[i + 1], key[i + 2], key[i + 3]];
    const [d0, d1, d2, d3] = [decay[i], decay[i + 1], decay[i + 2], decay[i + 3]];
    const first = i * dim;
    const second = first + dim;
    const third = second + dim;
    const fourth = third + dim;
    let [x0, x1, x2, x3] = [0, 0, 0, 0];
    let [y0, y1, y2, y3] = [0, 0, 0, 0];
    for (let c = 0; c < dim; c++) {
      const r = ofRead[c];
      const p0 = d0 * before[first + c];
      const p1 = d1 * before[second + c];
      const p2 = d2 * before[third + c];
      const p3 = d3 * before[fourth + c];
      x0 += p0 * r;
      x1 += p1 * r;
      x2 += p2 * r;
      x3 += p3 * r;
      const h0 = gradient[first + c] + k0 * r;
      const h1 = gradient[second + c] + k1 * r;
      const h2 = gradient[third + c] + k2 * r;
      const h3 = gradient[fourth + c] + k3 * r;
      y0 += p0 * h0;
      y1 += p1 * h1;
      y2 += p2 * h2;
      y3 += p3 * h3;
      gradient[first + c] = d0 * h0;
      gradient[second + c] = d1 * h1;
      gradient[third + c] = d2 * h2;
      gradient[fourth + c] = d3 * h3;
      squares[c] += h0 * h0 + h1 * h1 + (h2 * h2 + h3 * h3);
    }
    ofKey[i] += x0;
    ofKey[i + 1] += x1;
    ofKey[i + 2] += x2;
    ofKey[i + 3] += x3;
    ofGate.set([y0, y1, y2, y3], i);
  }
}

/** Passes the decay of an additive write: ofGate_i = Σ_c d_i before_ic G_ic, then G_i = d_i G_i. */
export function passDecay(
  gradient: Float64Array,
  before: Float64Array,
  decay: Float64Array,
  ofGate: Float64Array,
): void {
  const dim = gradient.length / decay.length;
  for (let i = 0; i < decay.length; i++) {
    const d = decay[i];
    let sum = 0;
    for (let at = i * dim; at < (i + 1) * dim; at++) {
      sum += d * before[at] * gradient[at];
      gradient[at] *= d;
    }
    ofGate[i] = sum;
  }
}

/** Σ_i x_i, four elements at a time. */
export function sumOfRows(x: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < x.length; i += rowsAtATime) sum += x[i] + x[i + 1] + (x[i + 2] + x[i + 3]);
  return sum;
}
