// AssemblyScript: the fp64 inner loops of the attention oracle, two lanes at a time. WebAssembly
// never contracts a multiply and an add, so every operation below rounds once, to nearest even, and
// the error analysis in ../tile-level.ts counts exactly the operations written here.

import { capped } from './exp2';
import { stridedProduct } from './strided-product';

export { capSlopes, differentiate, multiplyBy, productWithSizes, rowProducts } from './gradients';
export { narrowColumns, narrowProduct, narrowRows } from './single';
export { rowProduct } from './strided-product';
export { weights } from './weights';

/** C[rows × columns] = A[rows × inner] · B[inner × columns]; rows and columns are multiples of 4. */
export function product(a: usize, b: usize, c: usize, rows: i32, inner: i32, columns: i32): void {
  stridedProduct(a, b, c, (<usize>inner) << 3, 8, rows, inner, columns);
}

/**
 * C = A · B and M = A · |B| for A ≥ 0, with the operand shapes of `product`: the weighted sum of the
 * values and the weighted sum of their magnitudes from the same products.
 */
export function productWithMagnitude(
  a: usize,
  b: usize,
  c: usize,
  m: usize,
  rows: i32,
  inner: i32,
  columns: i32,
): void {
  const aStride: usize = (<usize>inner) << 3;
  const bStride: usize = (<usize>columns) << 3;
  for (let i = 0; i < rows; i += 2) {
    for (let j = 0; j < columns; j += 4) {
      let a0: usize = a + <usize>i * aStride;
      let a1: usize = a0 + aStride;
      let p: usize = b + ((<usize>j) << 3);
      let c00 = f64x2.splat(0);
      let c01 = f64x2.splat(0);
      let c10 = f64x2.splat(0);
      let c11 = f64x2.splat(0);
      let m00 = f64x2.splat(0);
      let m01 = f64x2.splat(0);
      let m10 = f64x2.splat(0);
      let m11 = f64x2.splat(0);
      for (let k = 0; k < inner; k++) {
        const b0 = v128.load(p);
        const b1 = v128.load(p, 16);
        const x0 = v128.load64_splat(a0);
        let t = f64x2.mul(x0, b0);
        c00 = f64x2.add(c00, t);
        m00 = f64x2.add(m00, f64x2.abs(t));
        t = f64x2.mul(x0, b1);
        c01 = f64x2.add(c01, t);
        m01 = f64x2.add(m01, f64x2.abs(t));
        const x1 = v128.load64_splat(a1);
        t = f64x2.mul(x1, b0);
        c10 = f64x2.add(c10, t);
        m10 = f64x2.add(m10, f64x2.abs(t));
        t = f64x2.mul(x1, b1);
        c11 = f64x2.add(c11, t);
        m11 = f64x2.add(m11, f64x2.abs(t));
        a0 += 8;
        a1 += 8;
        p += bStride;
      }
      const at: usize = <usize>i * bStride + ((<usize>j) << 3);
      v128.store(c + at, c00);
      v128.store(c + at, c01, 16);
      v128.store(c + at + bStride, c10);
      v128.store(c + at + bStride, c11, 16);
      v128.store(m + at, m00);
      v128.store(m + at, m01, 16);
      v128.store(m + at + bStride, m10);
      v128.store(m + at + bStride, m11, 16);
    }
  }
}

/** out[i][j] = out[i][j] · factor[i] + tile[i][j]; columns is even. */
export function accumulate(out: usize, tile: usize, factor: usize, rows: i32, columns: i32): void {
  let o = out;
  let t = tile;
  for (let i = 0; i < rows; i++) {
    const f = v128.load64_splat(factor + ((<usize>i) << 3));
    for (let j = 0; j < columns; j += 2) {
      v128.store(o, f64x2.add(f64x2.mul(v128.load(o), f), v128.load(t)));
      o += 16;
      t += 16;
    }
  }
}

/** Multiplies the rows of a [rows × 64] matrix by their factors. */
export function scaleRows(matrix: usize, factors: usize, rows: i32): void {
  for (let i = 0; i < rows; i++) {
    const factor = v128.load64_splat(factors + ((<usize>i) << 3));
    const row = matrix + ((<usize>i) << 9);
    for (let at: usize = 0; at < 512; at += 16)
      v128.store(row + at, f64x2.mul(v128.load(row + at), factor));
  }
}

/** Replaces each score s by tanh(s · factor / (2 log2 e)) = (2^(s·factor) − 1)/(2^(s·factor) + 1). */
export function capScores(scores: usize, count: i32, factor: f64): void {
  const k = f64x2.splat(factor);
  for (let i = 0; i < count; i += 2) {
    const at: usize = scores + ((<usize>i) << 3);
    v128.store(at, capped(f64x2.mul(v128.load(at), k)));
  }
}
