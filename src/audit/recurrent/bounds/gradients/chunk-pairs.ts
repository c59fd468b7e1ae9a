import type { TokenBlock } from '../token-blocks.js';
import type { Errored } from './gradient-rows.js';

/** Gradients of P and A of a block, and where what they make of queries, keys and β is added. */
export interface PairGradients {
  readonly intra: Errored;
  /** Null for additive writes. */
  readonly triangle: Errored | null;
  readonly dq: Errored;
  /** By P, and by A. */
  readonly written: Errored;
  readonly read: Errored;
  readonly dbeta: Errored;
}

/** Row t and column j of the pairs, and the relative error of their terms by key dimension. */
interface Pair {
  readonly t: number;
  readonly j: number;
  readonly share: (at: number) => number;
}

/** Adds a pair's terms; `decays` are from j to t. */
function addPair(
  to: PairGradients,
  { q, k, beta, count }: TokenBlock,
  decays: Float64Array,
  { t, j, share }: Pair,
): void {
  const { intra, triangle, dq, written, read, dbeta } = to;
  const dim = q.length / beta.length;
  const place = t * count + j;
  const [p, ofP] = [intra.value[place], intra.error[place]];
  const isPair = triangle !== null && j < t;
  const [a, ofA] = isPair ? [triangle.value[place], triangle.error[place]] : [0, 0];
  const [sizeP, sizeA] = [Math.abs(p) + ofP, Math.abs(a) + ofA];
  let [dot, sizes] = [0, 0];
  for (let i = 0; i < dim; i++) {
    const [row, column] = [t * dim + i, j * dim + i];
    const decay = decays[column];
    const error = share(row);
    const key = k[column] * decay;
    const query = q[row] * decay;
    dq.value[row] += p * key;
    dq.error[row] += (ofP + sizeP * error) * Math.abs(key);
    written.value[column] += p * query;
    written.error[column] += (ofP + sizeP * error) * Math.abs(query);
    if (!isPair) continue;
    const own = beta[t] * k[row] * decay;
    const other = beta[t] * key;
    read.value[row] += a * other;
    read.error[row] += (ofA + sizeA * error) * Math.abs(other);
    read.value[column] += a * own;
    read.error[column] += (ofA + sizeA * error) * Math.abs(own);
    dot += k[row] * key;
    sizes += Math.abs(k[row] * key) * error;
  }
  dbeta.value[t] += a * dot;
  dbeta.error[t] += ofA * Math.abs(dot) + sizeA * sizes;
}

/**
 * Adds what the gradients of P and A make of queries, keys and β. `share` is the relative error of a term, decay included, by row and key
 * dimension; `decays` is working memory of [n, key dimension].
 */
export function addPairGradients(
  to: PairGradients,
  block: TokenBlock,
  decays: Float64Array,
  share: (at: number) => number,
): void {
  const { count, decay } = block;
  const dim = decay.length / block.beta.length;
  for (let t = 0; t < count; t++) {
    for (let at = 0; at < t * dim; at++) decays[at] *= decay[t * dim + (at % dim)];
    decays.fill(1, t * dim, (t + 1) * dim);
    for (let j = 0; j <= t; j++) addPair(to, block, decays, { t, j, share });
  }
}
