// AssemblyScript: the fp64 inner loops of the oracle of gradients, two lanes at a time. See ./tile-kernels.ts on
// rounding; test/oracles/gradients/tile-definitions.ts defines what each computes. Tiles are 64 × 64.

import { capped, exponential, sumOf } from './exp2';

/**
 * As `capScores`, and beside each score the slope 1 − tanh² = 4e/(e + 1)² with e = 2^-|s·factor|, the exponent cut off
 * at -1000.
 */
export function capSlopes(scores: usize, slopes: usize, count: i32, factor: f64): void {
  const one = f64x2.splat(1);
  const four = f64x2.splat(4);
  const k = f64x2.splat(factor);
  for (let i = 0; i < count; i += 2) {
    const at: usize = scores + ((<usize>i) << 3);
    const w = f64x2.mul(v128.load(at), k);
    v128.store(at, capped(w));
    const e = exponential(f64x2.neg(f64x2.min(f64x2.abs(w), f64x2.splat(1000))));
    const d = f64x2.add(e, one);
    v128.store(slopes + ((<usize>i) << 3), f64x2.div(f64x2.div(f64x2.mul(four, e), d), d));
  }
}

/** target[i] = target[i] · factors[i]. */
export function multiplyBy(target: usize, factors: usize, count: i32): void {
  for (let i = 0; i < count; i += 2) {
    const at: usize = (<usize>i) << 3;
    v128.store(target + at, f64x2.mul(v128.load(target + at), v128.load(factors + at)));
  }
}

/** Per row Σ w·x and Σ |w·x|: the sums of even and of odd places, then the two. */
export function rowProducts(
  weights: usize,
  products: usize,
  rows: i32,
  sums: usize,
  sizes: usize,
): void {
  for (let i = 0; i < rows; i++) {
    let sum = f64x2.splat(0);
    let size = f64x2.splat(0);
    for (let j = 0; j < 64; j += 2) {
      const at: usize = (<usize>(i * 64 + j)) << 3;
      const t = f64x2.mul(v128.load(weights + at), v128.load(products + at));
      sum = f64x2.add(sum, t);
      size = f64x2.add(size, f64x2.abs(t));
    }
    const row: usize = (<usize>i) << 3;
    store<f64>(sums + row, sumOf(sum));
    store<f64>(sizes + row, sumOf(size));
  }
}

/**
 * Of weights w and products x in place: w becomes P = w / total, x becomes dS = P·(x − mean), and `scales` gets
 * P·(|x| + size), with one total, mean and size a row.
 */
export function differentiate(
  weights: usize,
  products: usize,
  scales: usize,
  rows: i32,
  total: usize,
  mean: usize,
  size: usize,
): void {
  for (let i = 0; i < rows; i++) {
    const row: usize = (<usize>i) << 3;
    const l = v128.load64_splat(total + row);
    const d = v128.load64_splat(mean + row);
    const a = v128.load64_splat(size + row);
    for (let j = 0; j < 64; j += 2) {
      const at: usize = (<usize>(i * 64 + j)) << 3;
      const p = f64x2.div(v128.load(weights + at), l);
      const x = v128.load(products + at);
      v128.store(weights + at, p);
      v128.store(products + at, f64x2.mul(p, f64x2.sub(x, d)));
      v128.store(scales + at, f64x2.mul(p, f64x2.add(f64x2.abs(x), a)));
    }
  }
}

/**
 * C = A · B and N = M · |B|, all of 64 rows, for A and M whose element [i][k] lies at i · rowStride + k · innerStride
 * bytes, B [64 × columns] and columns a multiple of 4: a product with a tile or with its transpose, and the sizes of
 * its terms by other factors.
 */
export function productWithSizes(
  a: usize,
  m: usize,
  b: usize,
  c: usize,
  n: usize,
  rowStride: usize,
  innerStride: usize,
  columns: i32,
): void {
  const bStride: usize = (<usize>columns) << 3;
  for (let i = 0; i < 64; i += 2) {
    for (let j = 0; j < columns; j += 4) {
      let a0: usize = a + <usize>i * rowStride;
      let a1: usize = a0 + rowStride;
      let m0: usize = m + <usize>i * rowStride;
      let m1: usize = m0 + rowStride;
      let p: usize = b + ((<usize>j) << 3);
      let c00 = f64x2.splat(0);
      let c01 = f64x2.splat(0);
      let c10 = f64x2.splat(0);
      let c11 = f64x2.splat(0);
      let n00 = f64x2.splat(0);
      let n01 = f64x2.splat(0);
      let n10 = f64x2.splat(0);
      let n11 = f64x2.splat(0);
      for (let k = 0; k < 64; k++) {
        const b0 = v128.load(p);
        const b1 = v128.load(p, 16);
        let x = v128.load64_splat(a0);
        c00 = f64x2.add(c00, f64x2.mul(x, b0));
        c01 = f64x2.add(c01, f64x2.mul(x, b1));
        x = v128.load64_splat(a1);
        c10 = f64x2.add(c10, f64x2.mul(x, b0));
        c11 = f64x2.add(c11, f64x2.mul(x, b1));
        const s0 = f64x2.abs(b0);
        const s1 = f64x2.abs(b1);
        x = v128.load64_splat(m0);
        n00 = f64x2.add(n00, f64x2.mul(x, s0));
        n01 = f64x2.add(n01, f64x2.mul(x, s1));
        x = v128.load64_splat(m1);
        n10 = f64x2.add(n10, f64x2.mul(x, s0));
        n11 = f64x2.add(n11, f64x2.mul(x, s1));
        a0 += innerStride;
        a1 += innerStride;
        m0 += innerStride;
        m1 += innerStride;
        p += bStride;
      }
      const at: usize = <usize>i * bStride + ((<usize>j) << 3);
      v128.store(c + at, c00);
      v128.store(c + at, c01, 16);
      v128.store(c + at + bStride, c10);
      v128.store(c + at + bStride, c11, 16);
      v128.store(n + at, n00);
      v128.store(n + at, n01, 16);
      v128.store(n + at + bStride, n10);
      v128.store(n + at + bStride, n11, 16);
    }
  }
}
