// AssemblyScript: products in fp32, four lanes at a time, for statistics. Numbers are scaled by powers of two before they are
// narrowed, so that those near the largest of their row or column stay in the range of fp32.

/** Tiles are 64 by 64. */
const tile: i32 = 64;

/** 2^(1023 − e) for the biased exponent e of a positive number, kept a normal number: times the number it is below 4. */
// @inline
export function scaleOf(largest: f64): f64 {
  const field = <i32>(reinterpret<u64>(largest) >> 52);
  // Zeros, infinities and NaNs stay what they are.
  if (largest === 0 || field === 2047) return 1;
  return reinterpret<f64>((<u64>max<i32>(2046 - field, 1)) << 52);
}

/**
 * Narrows rows of an even number of columns to fp32, each times a power of two that makes its largest number about 1; `back` has the
 * inverses of these.
 */
export function narrowRows(
  source: usize,
  target: usize,
  back: usize,
  rows: i32,
  columns: i32,
): void {
  let from = source;
  let to = target;
  for (let i = 0; i < rows; i++) {
    let most = f64x2.splat(0);
    for (let j = 0; j < columns; j += 2)
      most = f64x2.max(most, f64x2.abs(v128.load(from + ((<usize>j) << 3))));
    const scale = scaleOf(max<f64>(f64x2.extract_lane(most, 0), f64x2.extract_lane(most, 1)));
    store<f64>(back + ((<usize>i) << 3), 1 / scale);
    const factor = f64x2.splat(scale);
    for (let j = 0; j < columns; j += 2) {
      const narrow = f32x4.demote_f64x2_zero(f64x2.mul(v128.load(from), factor));
      v128.store64_lane(to, narrow, 0);
      from += 16;
      to += 8;
    }
  }
}

/** The same of the 64 columns of a matrix. */
export function narrowColumns(source: usize, target: usize, back: usize, rows: i32): void {
  for (let j: usize = 0; j < <usize>tile; j += 2) {
    let most = f64x2.splat(0);
    for (let i = 0; i < rows; i++)
      most = f64x2.max(most, f64x2.abs(v128.load(source + ((<usize>(i * tile) + j) << 3))));
    const first = scaleOf(f64x2.extract_lane(most, 0));
    const second = scaleOf(f64x2.extract_lane(most, 1));
    const factor = f64x2.replace_lane(f64x2.splat(first), 1, second);
    v128.store(back + (j << 3), f64x2.div(f64x2.splat(1), factor));
    for (let i = 0; i < rows; i++) {
      const at = <usize>(i * tile) + j;
      const narrow = f32x4.demote_f64x2_zero(f64x2.mul(v128.load(source + (at << 3)), factor));
      v128.store64_lane(target + (at << 2), narrow, 0);
    }
  }
}

/** Four fp32 sums as fp64, times the factors of their row and columns. */
// @inline
function widen(out: usize, sums: v128, ofRow: v128, ofColumns: usize): void {
  const low = f64x2.mul(f64x2.promote_low_f32x4(sums), ofRow);
  const upper = i64x2.shuffle(sums, sums, 1, 1);
  const high = f64x2.mul(f64x2.promote_low_f32x4(upper), ofRow);
  v128.store(out, f64x2.mul(low, v128.load(ofColumns)));
  v128.store(out, f64x2.mul(high, v128.load(ofColumns, 16)), 16);
}

/**
 * C[64 × 64] in fp64 = A[64 × inner] · B[inner × 64] in fp32, each element times the factors of its row and its column. An element is
 * off by at most (inner + 1)·2^-24 times the product of magnitudes, and what the narrowing lost.
 */
export function narrowProduct(
  a: usize,
  b: usize,
  c: usize,
  ofRows: usize,
  ofColumns: usize,
  inner: i32,
): void {
  const stride: usize = (<usize>inner) << 2;
  for (let i = 0; i < tile; i += 4) {
    const factors = ofRows + ((<usize>i) << 3);
    for (let j = 0; j < tile; j += 8) {
      let a0: usize = a + <usize>i * stride;
      let a1: usize = a0 + stride;
      let a2: usize = a1 + stride;
      let a3: usize = a2 + stride;
      let p: usize = b + ((<usize>j) << 2);
      let c00 = f32x4.splat(0);
      let c01 = f32x4.splat(0);
      let c10 = f32x4.splat(0);
      let c11 = f32x4.splat(0);
      let c20 = f32x4.splat(0);
      let c21 = f32x4.splat(0);
      let c30 = f32x4.splat(0);
      let c31 = f32x4.splat(0);
      for (let k = 0; k < inner; k++) {
        const b0 = v128.load(p);
        const b1 = v128.load(p, 16);
        const x0 = v128.load32_splat(a0);
        c00 = f32x4.add(c00, f32x4.mul(x0, b0));
        c01 = f32x4.add(c01, f32x4.mul(x0, b1));
        const x1 = v128.load32_splat(a1);
        c10 = f32x4.add(c10, f32x4.mul(x1, b0));
        c11 = f32x4.add(c11, f32x4.mul(x1, b1));
        const x2 = v128.load32_splat(a2);
        c20 = f32x4.add(c20, f32x4.mul(x2, b0));
        c21 = f32x4.add(c21, f32x4.mul(x2, b1));
        const x3 = v128.load32_splat(a3);
        c30 = f32x4.add(c30, f32x4.mul(x3, b0));
        c31 = f32x4.add(c31, f32x4.mul(x3, b1));
        a0 += 4;
        a1 += 4;
        a2 += 4;
        a3 += 4;
        p += (<usize>tile) << 2;
      }
      let out: usize = c + ((<usize>(i * tile + j)) << 3);
      const columns = ofColumns + ((<usize>j) << 3);
      let ofRow = v128.load64_splat(factors);
      widen(out, c00, ofRow, columns);
      widen(out + 32, c01, ofRow, columns + 32);
      out += (<usize>tile) << 3;
      ofRow = v128.load64_splat(factors, 8);
      widen(out, c10, ofRow, columns);
      widen(out + 32, c11, ofRow, columns + 32);
      out += (<usize>tile) << 3;
      ofRow = v128.load64_splat(factors, 16);
      widen(out, c20, ofRow, columns);
      widen(out + 32, c21, ofRow, columns + 32);
      out += (<usize>tile) << 3;
      ofRow = v128.load64_splat(factors, 24);
      widen(out, c30, ofRow, columns);
      widen(out + 32, c31, ofRow, columns + 32);
    }
  }
}
