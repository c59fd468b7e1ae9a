// AssemblyScript: one fused dot product in fp64, for the operands that the product of tiles cannot do in
// fp32: infinities, NaNs and exponents near the ends of the range. All of it is exact but the
// truncations, which are what the tensor core does (src/hardware/tensor-core/fused-dot-product.ts).

/** Below this, a sum of exponents has a zero operand in it; real products reach down to -266. */
const zeroProductExponent: i32 = -4096;

const noTerm: i32 = i32.MIN_VALUE;
/** The smallest E of a sum that has a term. */
const exponentFloor: i32 = -133;

/** The fused sums of a tensor core. */
@unmanaged
export class FusedSums {
  /** 4, 8, 16 or 32. */
  productsPerSum: i32;
  /** F, at most 25. */
  fractionBits: i32;
  /** The bits of a result that are kept. */
  resultMask: i32;
}

/** 2^exponent, -1022 to 1023. */
// @inline
function powerOfTwo(exponent: i32): f64 {
  return reinterpret<f64>((<i64>(exponent + 1023)) << 52);
}

/** The exponent of a finite non-zero fp32 number, -126 for subnormals. */
// @inline
function exponentOf(value: f32): i32 {
  return max<i32>((reinterpret<i32>(value) >> 23) & 0xff, 1) - 127;
}

/**
 * A finite value truncated toward zero to fp32, subnormals kept, then to the bits of `resultMask`;
 * infinite from 2^128 on, and no negative zero.
 */
function truncated(value: f64, resultMask: i32): f32 {
  if (abs<f64>(value) >= 340282366920938463463374607431768211456.0)
    return value > 0 ? Infinity : -Infinity;
  const nearest = <f32>value;
  let bits = reinterpret<i32>(nearest);
  if (abs<f64>(<f64>nearest) > abs<f64>(value)) bits--;
  bits &= resultMask;
  return bits & 0x7fffffff ? reinterpret<f32>(bits) : 0;
}

/**
 * c + Σ a[k]·b[k] as one fused sum. `a` and
 * `aExponents` step by 4 bytes; `b` by 32 and `bExponents` by 16, the column of a panel. Defined by
 * `fusedDotProduct` of src/hardware/tensor-core/fused-dot-product.ts.
 */
export function exactDotProduct(
  a: usize,
  aExponents: usize,
  b: usize,
  bExponents: usize,
  c: f32,
  sums: FusedSums,
): f32 {
  const count = sums.productsPerSum;
  const fractionBits = sums.fractionBits;
  // In fp64 no finite product overflows, so this is not finite exactly if an operand decides so.
  let special: f64 = <f64>c;
  let largest = c === 0 ? noTerm : exponentOf(c);
  for (let k: usize = 0; k < <usize>count; k++) {
    special += <f64>load<f32>(a + (k << 2)) * <f64>load<f32>(b + (k << 5));
    const exponent = <i32>load<i16>(aExponents + (k << 2)) + <i32>load<i16>(bExponents + (k << 4));
    if (exponent > zeroProductExponent) largest = max<i32>(largest, exponent);
  }
  if (special !== special) return reinterpret<f32>(0x7fffffff);
  if (abs<f64>(special) === Infinity) return <f32>special;
  if (largest === noTerm) return 0;
  largest = max<i32>(largest, exponentFloor);
  const scale = powerOfTwo(fractionBits - largest);
  let sum = trunc<f64>(<f64>c * scale);
  for (let k: usize = 0; k < <usize>count; k++)
    sum += trunc<f64>(<f64>load<f32>(a + (k << 2)) * <f64>load<f32>(b + (k << 5)) * scale);
  return truncated(sum * powerOfTwo(largest - fractionBits), sums.resultMask);
}
