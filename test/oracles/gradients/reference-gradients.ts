import { decodeTensor } from '../../../src/formats/index.js';
import type { Problem, Tensor } from '../../../src/problem/index.js';
import { readFeatures } from '../attention/reference-features.js';
import type { Arena, Mpfr, Real } from '../mpfr.js';

/** Bits to which scores are known after the point, and all else relative to its size. */
const significantBits = 400;

/** One gradient in MPFR, element by element in the layout of its tensor. */
export interface ReferenceGradient {
  readonly length: number;
  /** |value − exact|, rounded up. */
  readonly distance: (at: number, value: number) => number;
  readonly value: (at: number) => number;
  /** Σ of the sizes of the terms, and Σ with |dP| + Σ P|dP| in the place of |dP − D|: the oracle's magnitude. */
  readonly terms: (at: number) => number;
  readonly magnitude: (at: number) => number;
  /** Whether any query sees the key, or the row any key. */
  readonly isTouched: (at: number) => boolean;
}

/** The gradients of a finite problem in MPFR: a second implementation that shares no code with oracles/. */
export type ReferenceGradients = Readonly<
  Record<'dq' | 'dk' | 'dv' | 'dbias' | 'dsink' | 'mean', ReferenceGradient>
>;

function dims(tensor: Tensor): readonly number[] {
  return tensor.shape.length === 3 ? [1, ...tensor.shape] : tensor.shape;
}

/** log2 of the largest magnitude, rounded up; 0 for no magnitude above 1. */
function exponentOf(values: Iterable<number>): number {
  let largest = 1;
  for (const x of values) if (Number.isFinite(x)) largest = Math.max(largest, Math.abs(x));
  return Math.ceil(Math.log2(largest)) + 1;
}

/** Sums of an output, in MPFR. */
class Sums {
  readonly values: Real[];
  readonly terms: Real[];
  readonly magnitudes: Real[];
  readonly touched: Uint8Array;
  readonly #arena: Arena;

  constructor(arena: Arena, length: number) {
    this.#arena = arena;
    const zero = arena.of(0);
    this.values = Array.from({ length }, () => zero);
    this.terms = [...this.values];
    this.magnitudes = [...this.values];
    this.touched = new Uint8Array(length);
  }

  /** Adds a term, and the size of it by other factors. */
  add(at: number, term: Real, size: Real): void {
    const a = this.#arena;
    this.values[at] = a.add(this.values[at], term);
    this.terms[at] = a.add(this.terms[at], a.absolute(term));
    this.magnitudes[at] = a.add(this.magnitudes[at], a.absolute(size));
    this.touched[at] = 1;
  }

  reference(): ReferenceGradient {
    const a = this.#arena;
    return {
      length: this.values.length,
      distance: (at, value) => a.distance(this.values[at], value),
      value: (at) => a.toNumber(this.values[at]),
      terms: (at) => a.toNumber(this.terms[at]),
      magnitude: (at) => a.toNumber(this.magnitudes[at]),
      isTouched: (at) => this.touched[at] === 1,
    };
  }
}

/** Where [sequence, head, query, key] is in a tensor that is broadcast. */
function broadcastIndex(shape: readonly number[], place: readonly number[]): number {
  const sizes = [1, 1, 1, 1, ...shape].slice(-4);
  return sizes.reduce((index, size, axis) => index * size + (size === 1 ? 0 : place[axis]), 0);
}

/** Runs `judge` with the gradients of a problem whose values are all finite; its numbers are freed afterwards. */
export function withReferenceGradients<T>(
  mpfr: Mpfr,
  problem: Problem,
  dout: Tensor,
  judge: (reference: ReferenceGradients) => T,
): T {
  const [batch, heads, queries, qkDim] = dims(problem.q);
  const [, kvHeads, keys] = dims(problem.k);
  const vDim = dims(problem.v)[3];
  const { bias, alibiSlopes, sink, dropout, softcap } = problem;
  const all = [problem.q, problem.k, problem.v, dout].map((tensor) => decodeTensor(tensor));
  const optional = (tensor: Tensor | undefined) =>
    tensor === undefined ? 0 : exponentOf(decodeTensor(tensor));
  const logits = sink === undefined ? null : decodeTensor(sink.logits);
  const bits =
    significantBits +
    all.reduce((sum, values) => sum + exponentOf(values), 0) +
    exponentOf([problem.scale]) +
    exponentOf([softcap ?? 1, 1 / (softcap ?? 1)]) +
    optional(bias) +
    optional(alibiSlopes) +
    optional(sink?.logits) +
    64;
  const features = readFeatures(problem);
  return mpfr.withPrecision(bits, (a) => {
    const [q, k, v, dO] = all.map((values) => Array.from(values, (x) => a.of(x)));
    const scale = a.of(problem.scale);
    const cap = softcap === null ? null : a.of(softcap);
    const share = a.of(1 - (dropout?.probability ?? 0));
    const [zero, one] = [a.of(0), a.of(1)];
    const sums = {
      dq: new Sums(a, all[0].length),
      dk: new Sums(a, all[1].length),
      dv: new Sums(a, all[2].length),
      dbias: new Sums(a, bias === undefined ? 0 : decodeTensor(bias).length),
      dsink: new Sums(a, logits?.length ?? 0),
      mean: new Sums(a, batch * heads * queries),
    };
    const dot = (x: Real[], xAt: number, y: Real[], yAt: number, length: number) => {
      let sum = zero;
      for (let t = 0; t < length; t++) sum = a.add(sum, a.multiply(x[xAt + t], y[yAt + t]));
      return sum;
    };
    for (let b = 0; b < batch; b++)
      for (let h = 0; h < heads; h++)
        for (let i = 0; i < queries; i++) {
          const kvHead = b * kvHeads + Math.floor((h * kvHeads) / heads);
          const row = (b * heads + h) * queries + i;
          const place = features.place(b, h, i);
          const visible = Array.from({ length: keys }, (_, j) => j).filter((j) =>
            features.sees(place, j),
          );
          if (visible.length === 0) continue;
          const slopes: Real[] = [];
          const scores = visible.map((j) => {
            const product = dot(q, row * qkDim, k, (kvHead * keys + j) * qkDim, qkDim);
            const scaled = a.multiply(product, scale);
            const tanh = cap === null ? zero : a.tanh(a.divide(scaled, cap));
            // By the factors of 1 − tanh², through exp: 1 − tanh itself would cancel.
            if (cap === null) slopes.push(one);
            else {
              const e = a.exp(a.multiply(a.of(-2), a.absolute(a.divide(scaled, cap))));
              const sum = a.add(one, e);
              slopes.push(a.divide(a.multiply(a.of(4), e), a.multiply(sum, sum)));
            }
            const capped = cap === null ? scaled : a.multiply(cap, tanh);
            if (!features.addsToScores) return capped;
            const [added, slope, distance] = features.addend(place, j).map((x) => a.of(x));
            return a.subtract(a.add(capped, added), a.multiply(slope, distance));
          });
          const logit = logits?.[h] ?? -Infinity;
          const withSink = logit === -Infinity ? scores : [...scores, a.of(logit)];
          const largest = withSink.reduce((x, y) => (a.isLess(x, y) ? y : x));
          const weights = withSink.map((score) => a.exp(a.subtract(score, largest)));
          const total = weights.reduce((x, y) => a.add(x, y));
          const p = weights.map((weight) => a.divide(weight, total));
          const kept = visible.map((j) =>
            features.isKept(place, j) ? a.divide(one, share) : zero,
          );
          const dP = visible.map((j, at) =>
            a.multiply(dot(dO, row * vDim, v, (kvHead * keys + j) * vDim, vDim), kept[at]),
          );
          let [mean, size] = [zero, zero];
          dP.forEach((x, at) => {
            const term = a.multiply(p[at], x);
            sums.mean.add(row, term, term);
            mean = a.add(mean, term);
            size = a.add(size, a.absolute(term));
          });
          visible.forEach((j, at) => {
            const ds = a.multiply(p[at], a.subtract(dP[at], mean));
            const of = a.multiply(p[at], a.add(a.absolute(dP[at]), size));
            if (bias !== undefined)
              sums.dbias.add(
                broadcastIndex(bias.shape, [
                  place.sequence,
                  place.head,
                  place.query,
                  j - place.firstKey,
                ]),
                ds,
                of,
              );
            const factor = a.multiply(slopes[at], scale);
            const [dt, ofT] = [a.multiply(ds, factor), a.multiply(of, factor)];
            const pd = a.multiply(p[at], kept[at]);
            const key = kvHead * keys + j;
            for (let c = 0; c < qkDim; c++) {
              const [qc, kc] = [q[row * qkDim + c], k[key * qkDim + c]];
              sums.dq.add(row * qkDim + c, a.multiply(dt, kc), a.multiply(ofT, kc));
              sums.dk.add(key * qkDim + c, a.multiply(dt, qc), a.multiply(ofT, qc));
            }
            for (let c = 0; c < vDim; c++) {
              const term = a.multiply(pd, dO[row * vDim + c]);
              sums.dv.add(key * vDim + c, term, term);
            }
          });
          if (logit !== -Infinity) {
            const ps = p[visible.length];
            sums.dsink.add(h, a.subtract(zero, a.multiply(ps, mean)), a.multiply(ps, size));
          }
        }
    return judge({
      dq: sums.dq.reference(),
      dk: sums.dk.reference(),
      dv: sums.dv.reference(),
      dbias: sums.dbias.reference(),
      dsink: sums.dsink.reference(),
      mean: sums.mean.reference(),
    });
  });
}
