// AssemblyScript: a product of matrices in fp64, two lanes at a time, of which the first may lie in memory by rows or by columns.

/**
 * C[rows × columns] = A[rows × inner] · B[inner × columns], with element [i][k] of A at i · rowStride + k · innerStride bytes; rows and
 * columns are multiples of 4.
 */
// @inline
export function stridedProduct(
  a: usize,
  b: usize,
  c: usize,
  rowStride: usize,
  innerStride: usize,
  rows: i32,
  inner: i32,
  columns: i32,
): void {
  const bStride: usize = (<usize>columns) << 3;
  for (let i = 0; i < rows; i += 4) {
    for (let j = 0; j < columns; j += 4) {
      let a0: usize = a + <usize>i * rowStride;
      let a1: usize = a0 + rowStride;
      let a2: usize = a1 + rowStride;
      let a3: usize = a2 + rowStride;
      let p: usize = b + ((<usize>j) << 3);
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
        a0 += innerStride;
        a1 += innerStride;
        a2 += innerStride;
        a3 += innerStride;
        p += bStride;
      }
      let out: usize = c + <usize>i * bStride + ((<usize>j) << 3);
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
 * c[64] = the products of a row a[inner] with the 64 rows of B[64 × inner]. Each is summed up in ascending order, one rounding a
 * product and one a sum, as `stridedProduct` does: the same bits of a matrix that need not be transposed.
 */
export function rowProduct(a: usize, b: usize, c: usize, inner: i32): void {
  const stride: usize = (<usize>inner) << 3;
  for (let j = 0; j < 64; j += 4) {
    let p0: usize = b + <usize>j * stride;
    let p1: usize = p0 + stride;
    let p2: usize = p1 + stride;
    let p3: usize = p2 + stride;
    let x: usize = a;
    let low = f64x2.splat(0);
    let high = f64x2.splat(0);
    for (let k = 0; k < inner; k++) {
      const factor = v128.load64_splat(x);
      low = f64x2.add(low, f64x2.mul(factor, v128.load64_lane(p1, v128.load64_zero(p0), 1)));
      high = f64x2.add(high, f64x2.mul(factor, v128.load64_lane(p3, v128.load64_zero(p2), 1)));
      x += 8;
      p0 += 8;
      p1 += 8;
      p2 += 8;
      p3 += 8;
    }
    const out: usize = c + ((<usize>j) << 3);
    v128.store(out, low);
    v128.store(out, high, 16);
  }
}
