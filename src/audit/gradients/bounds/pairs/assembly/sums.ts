// AssemblyScript: products of a tile's pairs with rows of operands, two lanes at a time, and what operands' rows have.

import { stridedProduct } from '../../../../../../oracles/attention/assembly/strided-product';

/** Number of terms that are added between two partial sums that are looked at. */
const stretch: i32 = 16;

/** Rows of a tile. */
const tile: i32 = 64;

/**
 * C = A·B for A of [64 × 64], whose element [i][k] is at i · rowStride + k · innerStride bytes, and B and C of `columns`, a multiple
 * of 4.
 */
export function multiplyPairs(
  a: usize,
  b: usize,
  c: usize,
  rowStride: usize,
  innerStride: usize,
  columns: i32,
): void {
  stridedProduct(a, b, c, rowStride, innerStride, tile, tile, columns);
}

/**
 * Adds such a product, with an inner dimension of any length, to the target, a stretch of terms at a time; `largest` is raised to the
 * sizes that the target has on its way.
 */
export function addStretches(
  a: usize,
  b: usize,
  target: usize,
  largest: usize,
  rowStride: usize,
  innerStride: usize,
  inner: i32,
  columns: i32,
): void {
  const bStride: usize = (<usize>columns) << 3;
  for (let i = 0; i < tile; i += 2) {
    for (let j = 0; j < columns; j += 2) {
      let a0: usize = a + <usize>i * rowStride;
      let a1: usize = a0 + rowStride;
      let p: usize = b + ((<usize>j) << 3);
      const out: usize = <usize>i * bStride + ((<usize>j) << 3);
      let s0 = v128.load(target + out);
      let s1 = v128.load(target + out + bStride);
      let m0 = v128.load(largest + out);
      let m1 = v128.load(largest + out + bStride);
      for (let first = 0; first < inner; first += stretch) {
        const end = min<i32>(first + stretch, inner);
        let c0 = f64x2.splat(0);
        let c1 = f64x2.splat(0);
        for (let k = first; k < end; k++) {
          const b0 = v128.load(p);
          c0 = f64x2.add(c0, f64x2.mul(v128.load64_splat(a0), b0));
          c1 = f64x2.add(c1, f64x2.mul(v128.load64_splat(a1), b0));
          a0 += innerStride;
          a1 += innerStride;
          p += bStride;
        }
        s0 = f64x2.add(s0, c0);
        s1 = f64x2.add(s1, c1);
        m0 = f64x2.max(m0, f64x2.abs(s0));
        m1 = f64x2.max(m1, f64x2.abs(s1));
      }
      v128.store(target + out, s0);
      v128.store(target + out + bStride, s1);
      v128.store(largest + out, m0);
      v128.store(largest + out + bStride, m1);
    }
  }
}

/** Whether all of `count` numbers are 0. */
export function isZero(numbers: usize, count: i32): bool {
  for (let at = numbers; at < numbers + ((<usize>count) << 3); at += 16)
    if (v128.any_true(f64x2.ne(v128.load(at), f64x2.splat(0)))) return false;
  return true;
}

/** Turns [64 × columns] numbers to [columns × 64]. */
export function transpose(from: usize, to: usize, columns: i32): void {
  for (let row = 0; row < tile; row++)
    for (let c = 0; c < columns; c++)
      store<f64>(
        to + ((<usize>(c * tile + row)) << 3),
        load<f64>(from + ((<usize>(row * columns + c)) << 3)),
      );
}

/**
 * Completes the first `rows` of 64 rows of an operand: infinities and NaNs become 0; sizes and squares are written, and the sums of these by
 * row.
 */
export function completeFactor(
  values: usize,
  sizes: usize,
  squares: usize,
  rowSizes: usize,
  rowSquares: usize,
  columns: i32,
): void {
  let at: usize = 0;
  for (let row = 0; row < tile; row++) {
    let ofSizes: f64 = 0;
    let ofSquares: f64 = 0;
    for (let c = 0; c < columns; c++, at += 8) {
      let x = load<f64>(values + at);
      if (!(abs<f64>(x) < Infinity)) {
        x = 0;
        store<f64>(values + at, 0);
      }
      store<f64>(sizes + at, abs<f64>(x));
      store<f64>(squares + at, x * x);
      ofSizes += abs<f64>(x);
      ofSquares += x * x;
    }
    store<f64>(rowSizes + ((<usize>row) << 3), ofSizes);
    store<f64>(rowSquares + ((<usize>row) << 3), ofSquares);
  }
}

/** Products of norms of rows, from the sums of their squares: [64 × 64], never less than those of magnitudes. */
export function multiplyNorms(a: usize, b: usize, to: usize): void {
  for (let i = 0; i < tile; i++) {
    const size = sqrt<f64>(load<f64>(a + ((<usize>i) << 3))) * 1.0000000000009094947017729282379;
    for (let j = 0; j < tile; j++)
      store<f64>(
        to + ((<usize>(i * tile + j)) << 3),
        size * sqrt<f64>(load<f64>(b + ((<usize>j) << 3))),
      );
  }
}

/** Replaces the sums of squares of terms by the mean squares of their partial sums: see `partialSquares`. */
export function squarePartials(largest: usize, squares: usize): void {
  for (let at: usize = 0; at < <usize>(tile * tile * 8); at += 8) {
    const most = load<f64>(largest + at);
    store<f64>(squares + at, most * most + load<f64>(squares + at) / 6);
  }
}
