// AssemblyScript: what attributed runs compute in fp64, two lanes at a time: products of matrices and 2^x.

/** a0·b0 + a1·b1 + (a2·b2 + a3·b3), by lane. */
// @inline
function fourProducts(
  a0: v128,
  a1: v128,
  a2: v128,
  a3: v128,
  b0: v128,
  b1: v128,
  b2: v128,
  b3: v128,
): v128 {
  return f64x2.add(
    f64x2.add(f64x2.mul(a0, b0), f64x2.mul(a1, b1)),
    f64x2.add(f64x2.mul(a2, b2), f64x2.mul(a3, b3)),
  );
}

/** Two rows by four columns of `addProduct`: rows `target` and `under` of the sums, `a` and `second` of A. */
// @inline
function addFourColumns(
  target: usize,
  under: usize,
  a: usize,
  second: usize,
  b: usize,
  inner: i32,
  stride: usize,
): void {
  let t0 = v128.load(target);
  let t1 = v128.load(target, 16);
  let u0 = v128.load(under);
  let u1 = v128.load(under, 16);
  for (let k = 0; k < inner; k += 4) {
    const x0 = v128.load64_splat(a);
    const x1 = v128.load64_splat(a, 8);
    const x2 = v128.load64_splat(a, 16);
    const x3 = v128.load64_splat(a, 24);
    const y0 = v128.load64_splat(second);
    const y1 = v128.load64_splat(second, 8);
    const y2 = v128.load64_splat(second, 16);
    const y3 = v128.load64_splat(second, 24);
    const b1 = b + stride;
    const b2 = b1 + stride;
    const b3 = b2 + stride;
    let v0 = v128.load(b);
    let v1 = v128.load(b1);
    let v2 = v128.load(b2);
    let v3 = v128.load(b3);
    t0 = f64x2.add(t0, fourProducts(x0, x1, x2, x3, v0, v1, v2, v3));
    u0 = f64x2.add(u0, fourProducts(y0, y1, y2, y3, v0, v1, v2, v3));
    v0 = v128.load(b, 16);
    v1 = v128.load(b1, 16);
    v2 = v128.load(b2, 16);
    v3 = v128.load(b3, 16);
    t1 = f64x2.add(t1, fourProducts(x0, x1, x2, x3, v0, v1, v2, v3));
    u1 = f64x2.add(u1, fourProducts(y0, y1, y2, y3, v0, v1, v2, v3));
    a += 32;
    second += 32;
    b = b3 + stride;
  }
  v128.store(target, t0);
  v128.store(target, t1, 16);
  v128.store(under, u0);
  v128.store(under, u1, 16);
}

/**
 * target += A·B for A [rows × inner], B [inner × columns] and target [rows × columns], all fp64; `inner` and `columns`
 * are multiples of four. Four products are summed before they are added. For an odd number of rows there is room for
 * one more behind A and target, whose contents do not matter.
 */
export function addProduct(
  target: usize,
  a: usize,
  b: usize,
  rows: i32,
  inner: i32,
  columns: i32,
): void {
  const stride: usize = (<usize>columns) << 3;
  const line: usize = (<usize>inner) << 3;
  for (let row = 0; row < rows; row += 2) {
    for (let at: usize = 0; at < stride; at += 32)
      addFourColumns(target + at, target + stride + at, a, a + line, b + at, inner, stride);
    target += 2 * stride;
    a += 2 * line;
  }
}

/** 1.5 · 2^52: a sum with it is rounded to an integer, which lies in the low bits of its significand. */
const toInteger: f64 = 6755399441055744.0;

/** 2^n for an integer n as fp64, −1022 ≤ n ≤ 1023. */
// @inline
function powerOfTwo(n: v128): v128 {
  return i64x2.shl(f64x2.add(n, f64x2.splat(toInteger + 1023.0)), 52);
}

/**
 * 2^x in place for x [count], `count` even; relative error below 2^-51 where the result is normal, exact for integers.
 * x = n + r with |r| ≤ 1/2; e^(r·ln 2) by its series, whose first term left out is below 2^-57; the error of the rounded r·ln 2 is below
 * 2^-53.5 of the result, that of the sum below 2^-52. n goes into the result as two factors, since 2^n alone may be no normal number.
 */
export function powersOfTwo(x: usize, count: i32): void {
  const shift = f64x2.splat(toInteger);
  for (const end = x + ((<usize>count) << 3); x < end; x += 16) {
    const given = v128.load(x);
    // Beyond these bounds the result is 0 or ∞ all the same; a NaN stays one.
    const value = f64x2.max(f64x2.min(given, f64x2.splat(1100)), f64x2.splat(-1200));
    const n = f64x2.sub(f64x2.add(value, shift), shift);
    const t = f64x2.mul(f64x2.sub(value, n), f64x2.splat(0.6931471805599453));
    let q = f64x2.splat(1.0 / 6227020800.0);
    q = f64x2.add(f64x2.mul(q, t), f64x2.splat(1.0 / 479001600.0));
    q = f64x2.add(f64x2.mul(q, t), f64x2.splat(1.0 / 39916800.0));
    q = f64x2.add(f64x2.mul(q, t), f64x2.splat(1.0 / 3628800.0));
    q = f64x2.add(f64x2.mul(q, t), f64x2.splat(1.0 / 362880.0));
    q = f64x2.add(f64x2.mul(q, t), f64x2.splat(1.0 / 40320.0));
    q = f64x2.add(f64x2.mul(q, t), f64x2.splat(1.0 / 5040.0));
    q = f64x2.add(f64x2.mul(q, t), f64x2.splat(1.0 / 720.0));
    q = f64x2.add(f64x2.mul(q, t), f64x2.splat(1.0 / 120.0));
    q = f64x2.add(f64x2.mul(q, t), f64x2.splat(1.0 / 24.0));
    q = f64x2.add(f64x2.mul(q, t), f64x2.splat(1.0 / 6.0));
    q = f64x2.add(f64x2.mul(q, t), f64x2.splat(0.5));
    q = f64x2.add(f64x2.mul(q, t), f64x2.splat(1));
    q = f64x2.add(f64x2.mul(q, t), f64x2.splat(1));
    const half = f64x2.floor(f64x2.mul(n, f64x2.splat(0.5)));
    q = f64x2.mul(f64x2.mul(q, powerOfTwo(half)), powerOfTwo(f64x2.sub(n, half)));
    v128.store(x, v128.bitselect(q, given, f64x2.eq(given, given)));
  }
}
