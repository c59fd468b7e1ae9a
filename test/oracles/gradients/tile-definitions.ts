/**
 * Definitions of the WebAssembly loops of oracles/attention/assembly/gradients.ts, in the same order of operations, so
 * that results are equal bit for bit. docs/theory/bounds-backward.md counts the operations written here. Read these, run
 * those.
 */
import { cappedScore, exponential } from '../attention/tile-definitions.js';

/** The capped score tanh, and its slope 4e/(e + 1)² for e = 2^-|s·factor|, cut off at 2^-1000: `capSlopes`. */
export function cappedSlope(
  score: number,
  factor: number,
): { readonly tanh: number; readonly slope: number } {
  const e = exponential(-Math.min(Math.abs(score * factor), 1000));
  const d = e + 1;
  return { tanh: cappedScore(score, factor), slope: (4 * e) / d / d };
}

/** Σ w·x and Σ |w·x| of one row: even places, odd places, then both: `rowProducts`. */
export function rowProduct(
  weights: ArrayLike<number>,
  products: ArrayLike<number>,
): { readonly sum: number; readonly size: number } {
  const sums = [0, 0];
  const sizes = [0, 0];
  for (let j = 0; j < weights.length; j++) {
    const term = weights[j] * products[j];
    sums[j % 2] += term;
    sizes[j % 2] += Math.abs(term);
  }
  return { sum: sums[0] + sums[1], size: sizes[0] + sizes[1] };
}

/** Sums that a row's derivatives depend on: its sum of weights, Σ P dP and Σ P|dP|. */
export interface RowMeans {
  readonly total: number;
  readonly mean: number;
  readonly size: number;
}

/** P, dS = P·(dP − mean) and P·(|dP| + size) of one key: `differentiate`. */
export function derivative(
  weight: number,
  product: number,
  { total, mean, size }: RowMeans,
): { readonly p: number; readonly ds: number; readonly scale: number } {
  const p = weight / total;
  return { p, ds: p * (product - mean), scale: p * (Math.abs(product) + size) };
}

/** Σ a_k b_k and Σ m_k |b_k|, products added in order: an element of `productWithSizes`. */
export function dotWithSizes(
  a: ArrayLike<number>,
  m: ArrayLike<number>,
  b: ArrayLike<number>,
): { readonly sum: number; readonly size: number } {
  let sum = 0;
  let size = 0;
  for (let k = 0; k < b.length; k++) {
    sum += a[k] * b[k];
    size += m[k] * Math.abs(b[k]);
  }
  return { sum, size };
}
