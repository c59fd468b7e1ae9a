// AssemblyScript: the fp64 inner loops of the attention oracle, two lanes at a time. WebAssembly
// never contracts a multiply and an add, so every operation below rounds once, to nearest even, and
// the error analysis in ../tile-level.ts counts exactly the operations written here.

import { exp2Fraction, scaleByPowerOfTwo } from './exp2';

/** C[rows × columns] = A[rows × inner] · B[inner × columns]; rows and columns are multiples of 4. */
export function product(
  a: usize,
  b: usize,
  c: usize,
  rows: i32,
  inner: i32,
  columns: i32,
): void {
  const aStride: usize = <usize>inner << 3;
  const bStride: usize = <usize>columns << 3;
  for (let i = 0; i < rows; i += 4) {
    for (let j = 0; j < columns; j += 4) {
      let a0: usize = a + <usize>i * aStride;
      let a1: usize = a0 + aStride;
      let a2: usize = a1 + aStride;
      let a3: usize = a2 + aStride;
      let p: usize = b + (<usize>j << 3);
      let c00 = f64x2.splat(0);
      let c01 = f64x2.splat(0);
      let c10 = f64x2.splat(0);
      let c11 = f64x2.splat(0);
      let c20 = f64x2.splat(0);
      let c21 = f64x2.splat(0);
      let c30 = f64x2.splat(0);
      let c31 = f64x2.splat(0);
      for (let k = 0; k < inner; k++) {
        const b0 = v128.load(p);
        const b1 = v128.load(p, 16);
        const x0 = v128.load64_splat(a0);
        c00 = f64x2.add(c00, f64x2.mul(x0, b0));
        c01 = f64x2.add(c01, f64x2.mul(x0, b1));
        const x1 = v128.load64_splat(a1);
        c10 = f64x2.add(c10, f64x2.mul(x1, b0));
        c11 = f64x2.add(c11, f64x2.mul(x1, b1));
        const x2 = v128.load64_splat(a2);
        c20 = f64x2.add(c20, f64x2.mul(x2, b0));
        c21 = f64x2.add(c21, f64x2.mul(x2, b1));
        const x3 = v128.load64_splat(a3);
        c30 = f64x2.add(c30, f64x2.mul(x3, b0));
        c31 = f64x2.add(c31, f64x2.mul(x3, b1));
        a0 += 8;
        a1 += 8;
        a2 += 8;
        a3 += 8;
        p += bStride;
      }
      let out: usize = c + <usize>i * bStride + (<usize>j << 3);
      v128.store(out, c00);
      v128.store(out, c01, 16);
      out += bStride;
      v128.store(out, c10);
      v128.store(out, c11, 16);
      out += bStride;
      v128.store(out, c20);
      v128.store(out, c21, 16);
      out += bStride;
      v128.store(out, c30);
      v128.store(out, c31, 16);
    }
  }
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
  const aStride: usize = <usize>inner << 3;
  const bStride: usize = <usize>columns << 3;
  for (let i = 0; i < rows; i += 2) {
    for (let j = 0; j < columns; j += 4) {
      let a0: usize = a + <usize>i * aStride;
      let a1: usize = a0 + aStride;
      let p: usize = b + (<usize>j << 3);
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
      const at: usize = <usize>i * bStride + (<usize>j << 3);
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
export function accumulate(
  out: usize,
  tile: usize,
  factor: usize,
  rows: i32,
  columns: i32,
): void {
  let o = out;
  let t = tile;
  for (let i = 0; i < rows; i++) {
    const f = v128.load64_splat(factor + (<usize>i << 3));
    for (let j = 0; j < columns; j += 2) {
      v128.store(o, f64x2.add(f64x2.mul(v128.load(o), f), v128.load(t)));
      o += 16;
      t += 16;
    }
  }
}

/** Replaces each score s by tanh(s · factor / (2 log2 e)) = (2^(s·factor) − 1)/(2^(s·factor) + 1). */
export function capScores(scores: usize, count: i32, factor: f64): void {
  const one = f64x2.splat(1);
  const k = f64x2.splat(factor);
  for (let i = 0; i < count; i += 2) {
    const at: usize = scores + (<usize>i << 3);
    let w = f64x2.mul(v128.load(at), k);
    w = f64x2.max(f64x2.min(w, f64x2.splat(128)), f64x2.splat(-128));
    const n = f64x2.nearest(w);
    const e = scaleByPowerOfTwo(exp2Fraction(f64x2.sub(w, n)), n);
    v128.store(at, f64x2.div(f64x2.sub(e, one), f64x2.add(e, one)));
  }
}

/**
 * Turns a tile of scores into weights 2^(s·c − reference) in place and sums them by row, where
 * c = cHigh + cLow is a double-double. Row i sees columns low[i] ≤ j < high[i]; the others get
 * weight 0. reference[i] is an integer, −Infinity before the row's first visible column; it is
 * raised to the row's maximum when a weight would exceed 2^16, and factor[i] is the power of two
 * that older sums must be multiplied by. extent[i] becomes the largest |s·c| seen, maximum[i] the
 * largest s·c. A weight below 2^-1000 becomes 0; so does an older sum that falls by more than 2^1022,
 * to less than 2^-1005 of the new largest weight for each of its terms.
 */
export function weights(
  scores: usize,
  rows: i32,
  columns: i32,
  cHigh: f64,
  cLow: f64,
  low: usize,
  high: usize,
  reference: usize,
  factor: usize,
  extent: usize,
  maximum: usize,
  sums: usize,
): void {
  const split = f64x2.splat(134217729);
  const c = f64x2.splat(cHigh);
  const cTail = f64x2.splat(cLow);
  const cBig = f64x2.sub(f64x2.mul(split, c), f64x2.sub(f64x2.mul(split, c), c));
  const cSmall = f64x2.sub(c, cBig);
  for (let i = 0; i < rows; i++) {
    const row: usize = scores + <usize>(i * columns) * 8;
    const begin = load<i32>(low + (<usize>i << 2));
    const end = load<i32>(high + (<usize>i << 2));
    const at: usize = <usize>i << 3;
    if (begin >= end) {
      memory.fill(row, 0, <usize>columns << 3);
      store<f64>(factor + at, 1);
      store<f64>(sums + at, 0);
      continue;
    }
    let largest: f64 = -Infinity;
    let extreme: f64 = load<f64>(extent + at);
    for (let j = begin; j < end; j++) {
      const y = load<f64>(row + (<usize>j << 3)) * cHigh;
      largest = max<f64>(largest, y);
      extreme = max<f64>(extreme, abs<f64>(y));
    }
    store<f64>(extent + at, extreme);
    store<f64>(maximum + at, max<f64>(load<f64>(maximum + at), largest));
    let from = load<f64>(reference + at);
    if (from == -Infinity) {
      from = nearest<f64>(largest);
      store<f64>(reference + at, from);
      store<f64>(factor + at, 0);
    } else if (largest - from > 16) {
      const to = nearest<f64>(largest);
      const shift = from - to;
      store<f64>(
        factor + at,
        shift < -1022 ? 0 : reinterpret<f64>((<i64>shift + 1023) << 52),
      );
      store<f64>(reference + at, to);
      from = to;
    } else {
      store<f64>(factor + at, 1);
    }
    const origin = f64x2.splat(from);
    let sum = f64x2.splat(0);
    for (let j = 0; j < columns; j += 2) {
      const place: usize = row + (<usize>j << 3);
      const s = v128.load(place);
      // s·c as p + e: Dekker's product, then the tail of c.
      const p = f64x2.mul(s, c);
      const t = f64x2.mul(split, s);
      const sBig = f64x2.sub(t, f64x2.sub(t, s));
      const sSmall = f64x2.sub(s, sBig);
      let e = f64x2.sub(f64x2.mul(sBig, cBig), p);
      e = f64x2.add(e, f64x2.mul(sBig, cSmall));
      e = f64x2.add(e, f64x2.mul(sSmall, cBig));
      e = f64x2.add(e, f64x2.mul(sSmall, cSmall));
      e = f64x2.add(e, f64x2.mul(s, cTail));
      const n = f64x2.nearest(p);
      const f = f64x2.add(f64x2.sub(p, n), e);
      const shift = f64x2.sub(n, origin);
      const clamped = f64x2.max(f64x2.min(shift, f64x2.splat(1000)), f64x2.splat(-1000));
      let w = scaleByPowerOfTwo(exp2Fraction(f), clamped);
      w = v128.and(w, f64x2.ge(shift, f64x2.splat(-1000)));
      if (j < begin || j + 2 > end) {
        if (j < begin || j >= end) w = f64x2.replace_lane(w, 0, 0);
        if (j + 1 < begin || j + 1 >= end) w = f64x2.replace_lane(w, 1, 0);
      }
      v128.store(place, w);
      sum = f64x2.add(sum, w);
    }
    store<f64>(sums + at, f64x2.extract_lane(sum, 0) + f64x2.extract_lane(sum, 1));
  }
}
