// AssemblyScript: D = A·B + C on tiles as tensor cores do it, in fp32 SIMD. What a fused sum is, and
// why, is written in src/hardware/tensor-core; here it is only fast. Other modules of this folder may
// call these functions on memory of their own.
//
// Why fp32 is exact enough. With E the largest exponent of a sum and F the aligned fraction bits, a term
// is trunc(a·b·2^(F − E)). The product has at most 22 significant bits and both multiplications are
// exact, unless the product is below 2^-126; for E ≥ -98 that is below the unit 2^(E − F), and the term
// is 0 whatever the rounding. A term is below 2^(F + 2) ≤ 2^27, so 8 of them and C fit in 32 bits, and
// so do 16 of formats of at most 8 bits, whose significands are at most 1.875: a sum is kept in two
// halves. E ≤ 100 keeps everything finite and results normal. All other sums are found by their E and
// take the exact path.
import { exactDotProduct, FusedSums } from './tensor-core-exact';
import { zeroExponent } from './tensor-core-operands';
export { packColumns, packRows, packTransposedColumns } from './tensor-core-operands';

/** The E of the fast path: |E - 1| ≤ 99. */
const smallestExponent: i32 = -98;
/** Below this, all products have a zero operand. */
const zeroProductExponent: i32 = -4096;
/** Low bits of a 32-bit sum that its fp32 head does not take: the head has at most 19 bits. */
const tailMask: i32 = 0xfff;

/** For each lane the larger of the products' exponent and that of c. */
// @inline
function withExponentOf(c: v128, products: v128): v128 {
  const magnitude = v128.and(c, i32x4.splat(0x7fffffff));
  const exponent = v128.bitselect(
    i32x4.splat(zeroExponent),
    i32x4.sub(i32x4.shr_u(magnitude, 23), i32x4.splat(127)),
    i32x4.eq(magnitude, i32x4.splat(0)),
  );
  return i32x4.max_s(products, exponent);
}

/** Lanes whose sum the fast path cannot do: E out of range though there is a term. */
// @inline
function outOfRange(largest: v128): v128 {
  return v128.and(
    i32x4.gt_s(i32x4.abs(i32x4.sub(largest, i32x4.splat(1))), i32x4.splat(99)),
    i32x4.gt_s(largest, i32x4.splat(zeroProductExponent)),
  );
}

/** 2^(F - E) in each lane. */
// @inline
function alignment(largest: v128, fractionBits: i32): v128 {
  const clamped = i32x4.max_s(largest, i32x4.splat(smallestExponent));
  return i32x4.shl(i32x4.sub(i32x4.splat(127 + fractionBits), clamped), 23);
}

/** a·b·scale truncated to an integer. */
// @inline
function term(a: v128, b: v128, scale: v128): v128 {
  return i32x4.trunc_sat_f32x4_s(f32x4.mul(f32x4.mul(a, b), scale));
}

/** (first + second)/scale truncated toward zero to fp32 and to the bits of the mask. */
// @inline
function normalised(first: v128, second: v128, scale: v128, resultMask: v128): v128 {
  const tail = i32x4.splat(tailMask);
  const head = f32x4.add(
    f32x4.convert_i32x4_s(v128.andnot(first, tail)),
    f32x4.convert_i32x4_s(v128.andnot(second, tail)),
  );
  const rest = f32x4.add(
    f32x4.convert_i32x4_s(v128.and(first, tail)),
    f32x4.convert_i32x4_s(v128.and(second, tail)),
  );
  // Head and rest are exact; their sum is rounded, and one ulp too large where the error says so.
  const nearest = f32x4.add(head, rest);
  const error = f32x4.sub(rest, f32x4.sub(nearest, head));
  const tooLarge = f32x4.lt(f32x4.mul(error, nearest), f32x4.splat(0));
  const sum = v128.and(i32x4.add(nearest, tooLarge), resultMask);
  return f32x4.mul(sum, i32x4.sub(i32x4.splat(254 << 23), scale));
}

/**
 * C[rows][columns] += A·B in fused sums, ascending.
 * `a` is from `packRows`, `b` from `packColumns` or `packTransposedColumns`, `c` fp32 with columns
 * contiguous. Columns are a multiple of 8, inner of productsPerSum. Returns how many of the rows · columns · sums
 * fused sums took the exact path. Defined by `tensorCoreProduct` of src/hardware/tensor-core/matrix-product.ts.
 */
export function multiplyAccumulate(
  a: usize,
  b: usize,
  c: usize,
  rows: i32,
  inner: i32,
  columns: i32,
  sums: FusedSums,
): i32 {
  const productsPerSum = sums.productsPerSum;
  const fractionBits = sums.fractionBits;
  const aExponents = a + ((<usize>(rows * inner)) << 2);
  const bExponents = b + ((<usize>(inner * columns)) << 2);
  const aStride: usize = (<usize>inner) << 2;
  const cStride: usize = (<usize>columns) << 2;
  const sumBytes: usize = (<usize>productsPerSum) << 2;
  // Two 32-bit sums, so that 32 products fit: C goes with the first.
  const firstBytes: usize = productsPerSum >= 8 ? sumBytes >> 1 : sumBytes;
  const mask = i32x4.splat(sums.resultMask);
  let exactSums = 0;
  for (let n = 0; n < columns; n += 8) {
    for (let k = 0; k < inner; k += productsPerSum) {
      const values = b + ((<usize>(n * inner + k * 8)) << 2);
      const exponents = bExponents + ((<usize>(n * inner + k * 8)) << 1);
      let row = a + ((<usize>k) << 2);
      let rowExponents = aExponents + ((<usize>k) << 2);
      let out = c + ((<usize>n) << 2);
      for (let m = 0; m < rows; m++) {
        let largest = i16x8.splat(i16.MIN_VALUE);
        let q = exponents;
        for (let p = rowExponents, end = p + sumBytes; p < end; p += 16) {
          largest = i16x8.max_s(largest, i16x8.add(v128.load32_splat(p), v128.load(q)));
          largest = i16x8.max_s(largest, i16x8.add(v128.load32_splat(p, 4), v128.load(q, 16)));
          largest = i16x8.max_s(largest, i16x8.add(v128.load32_splat(p, 8), v128.load(q, 32)));
          largest = i16x8.max_s(largest, i16x8.add(v128.load32_splat(p, 12), v128.load(q, 48)));
          q += 64;
        }
        const c0 = v128.load(out);
        const c1 = v128.load(out, 16);
        const largest0 = withExponentOf(c0, i32x4.extend_low_i16x8_s(largest));
        const largest1 = withExponentOf(c1, i32x4.extend_high_i16x8_s(largest));
        if (v128.any_true(v128.or(outOfRange(largest0), outOfRange(largest1)))) {
          for (let lane: usize = 0; lane < 8; lane++)
            store<f32>(
              out + (lane << 2),
              exactDotProduct(
                row,
                rowExponents,
                values + (lane << 2),
                exponents + (lane << 1),
                load<f32>(out + (lane << 2)),
                sums,
              ),
            );
          exactSums += 8;
        } else {
          const scale0 = alignment(largest0, fractionBits);
          const scale1 = alignment(largest1, fractionBits);
          let sum0 = i32x4.trunc_sat_f32x4_s(f32x4.mul(c0, scale0));
          let sum1 = i32x4.trunc_sat_f32x4_s(f32x4.mul(c1, scale1));
          let first0 = i32x4.splat(0);
          let first1 = i32x4.splat(0);
          let p = row;
          q = values;
          for (let half = 0; half < 2; half++) {
            for (const end = row + (half === 0 ? firstBytes : sumBytes); p < end; p += 16) {
              let x = v128.load32_splat(p);
              sum0 = i32x4.add(sum0, term(x, v128.load(q), scale0));
              sum1 = i32x4.add(sum1, term(x, v128.load(q, 16), scale1));
              x = v128.load32_splat(p, 4);
              sum0 = i32x4.add(sum0, term(x, v128.load(q, 32), scale0));
              sum1 = i32x4.add(sum1, term(x, v128.load(q, 48), scale1));
              x = v128.load32_splat(p, 8);
              sum0 = i32x4.add(sum0, term(x, v128.load(q, 64), scale0));
              sum1 = i32x4.add(sum1, term(x, v128.load(q, 80), scale1));
              x = v128.load32_splat(p, 12);
              sum0 = i32x4.add(sum0, term(x, v128.load(q, 96), scale0));
              sum1 = i32x4.add(sum1, term(x, v128.load(q, 112), scale1));
              q += 128;
            }
            if (half === 0) {
              first0 = sum0;
              first1 = sum1;
              sum0 = i32x4.splat(0);
              sum1 = i32x4.splat(0);
            }
          }
          v128.store(out, normalised(first0, sum0, scale0, mask));
          v128.store(out, normalised(first1, sum1, scale1, mask), 16);
        }
        row += aStride;
        rowExponents += aStride;
        out += cStride;
      }
    }
  }
  return exactSums;
}
