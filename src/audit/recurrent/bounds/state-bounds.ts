import { addProduct, productWithTransposed, setMagnitudes } from './matrices.js';
import type { Step } from './steps.js';
import type { TokenBlock } from './token-blocks.js';

/** The exact state of a value head between blocks of tokens, and what a kernel's errs by. */
export interface StateBounds {
  /** [key dimension, value dimension]. */
  readonly exact: Float64Array;
  /** By element; null where only `norms` are known: of delta writes token by token. */
  readonly errors: Float64Array | null;
  /** By column, in the Euclidean norm, of delta writes, whose errors move between rows. */
  readonly norms: Float64Array;
}

/** ‖(I − β k kᵀ) D‖ of each token of a block at most: 1 or |1 − β‖k‖²|, of additive writes 1, times the largest decay. */
export function setSpreads(
  spreads: Float64Array,
  block: TokenBlock,
  dim: number,
  isDelta = true,
): void {
  const { count, k, beta, decay } = block;
  for (let t = 0; t < count; t++) {
    let squares = 0;
    let largest = 0;
    for (let i = t * dim; i < (t + 1) * dim; i++) {
      squares += k[i] * k[i];
      largest = Math.max(largest, decay[i]);
    }
    spreads[t] = largest * (isDelta ? Math.max(1, Math.abs(1 - beta[t] * squares)) : 1);
  }
}

/** The largest magnitude of the first `size` elements. */
export function largestOf(values: Float64Array, size: number): number {
  let largest = 0;
  for (let i = 0; i < size; i++) largest = Math.max(largest, Math.abs(values[i]));
  return largest;
}

/** Formats whose numbers lose no more by underflow than this lose less than 2^26 of them may add up to. */
const usualLoss = 2 ** -126;

/**
 * What all numbers that underflow within a block add to one of its results: each loses `least` at most, times at most the factors that it is multiplied by
 * later. There are fewer than 2^26 of them; of formats of fewer exponents they are counted: on the way to a result a number for each pair of tokens and
 * for each token and element, of four kinds (operands, products, factors and what is written).
 * @param others the largest of what results are made of besides
 */
export function lostByUnderflow(
  block: TokenBlock,
  state: Float64Array,
  others: number,
  least: number,
): number {
  const { count, q, k, v, beta } = block;
  const [keys, values] = [q.length / beta.length, v.length / beta.length];
  const vectors =
    (1 + largestOf(k, count * keys)) ** 2 *
    (1 + largestOf(q, count * keys)) *
    (1 + largestOf(beta, count));
  const terms = largestOf(v, count * values) + largestOf(state, state.length) + others;
  const numbers = least > usualLoss ? 4 * count * (count + keys + values) : 2 ** 26;
  return numbers * Math.max(least, usualLoss) * vectors * (1 + terms);
}

/** What a block of tokens does to errors. */
export interface BlockBound {
  /** What each output errs by at most, but for what the state before the block errs by and the scale, [n, value dimension]. */
  readonly outErrors: Float64Array;
  /** What outputs read of the state before the block, [n, key dimension]; null where that error is in `outErrors`. */
  readonly outReads: Float64Array | null;
  /** What the block does to the error of a state; null where errors stay in their rows. */
  readonly step: Step | null;
  /** What the columns of the state before the block err by, in the norm. */
  readonly normsBefore: Float64Array;
}

/** Bounds the errors of a block and moves the state past it; what it returns, but the step, is good until the next call. */
export type BlockBounder = (block: TokenBlock, state: StateBounds) => BlockBound;

/** Σ ‖a token's share‖ of what errors ε of a block's writes make of a state's columns: √(εᵀ |K Kᵀ| ε), by column. */
export function addWriteNorms(
  to: Float64Array,
  keys: Float64Array,
  errors: Float64Array,
  { count, dim }: { readonly count: number; readonly dim: number },
  work: { readonly gram: Float64Array; readonly products: Float64Array },
): void {
  const { gram, products } = work;
  const columns = to.length;
  productWithTransposed(gram, keys, keys, { rows: count, inner: dim, columns: count });
  setMagnitudes(gram, gram, count * count);
  products.fill(0);
  addProduct(products, gram, errors, { rows: count, inner: count, columns });
  for (let c = 0; c < columns; c++) {
    let sum = 0;
    for (let at = c; at < count * columns; at += columns) sum += errors[at] * products[at];
    to[c] += Math.sqrt(sum);
  }
}
