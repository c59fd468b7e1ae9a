/**
 * The exact error of an fp64 addition: (a + b) − sum, where sum must be the rounded a + b.
 *
 * Allocates nothing, for inner loops. Exact for every pair of finite operands whose sum is finite
 * and of which neither is the largest finite magnitude, subnormals included: an addition cannot
 * underflow inexactly. Elsewhere it can be NaN; see `orderedSumError`. Source: Møller 1965 and
 * Knuth, TAOCP vol. 2, 4.2.2 theorem B; freedom from overflow, Boldo, Graillat and Muller, "On the
 * robustness of the 2Sum and Fast2Sum algorithms", ACM TOMS 44(1), 2017.
 */
export function sumError(a: number, b: number, sum: number): number {
  const bRounded = sum - a;
  const aRounded = sum - bRounded;
  return a - aRounded + (b - bRounded);
}

/**
 * The exact error of an fp64 addition when |larger| ≥ |smaller| or larger is zero: as `sumError`, in
 * half the operations.
 *
 * Never overflows when sum is finite. Source: Dekker 1971 (Fast2Sum); Boldo, Graillat and Muller
 * 2017.
 */
export function fastSumError(larger: number, smaller: number, sum: number): number {
  return smaller - (sum - larger);
}

/**
 * As `sumError`, for every pair of finite operands whose sum is finite: it compares the operands,
 * and does not overflow inside even when one of them is the largest finite value.
 */
export function orderedSumError(a: number, b: number, sum: number): number {
  return Math.abs(a) >= Math.abs(b) ? fastSumError(a, b, sum) : fastSumError(b, a, sum);
}

/** 2^27 + 1: Veltkamp's multiplier that cuts a 53-bit significand into two of at most 26 bits. */
const splitter = 2 ** 27 + 1;

const largestOperand = 2 ** 995;
const largestProduct = 2 ** 1021;
const smallestProduct = 2 ** -969;

/**
 * The exact error of an fp64 multiplication: a·b − product, where product must be the rounded a·b.
 *
 * Allocates nothing, for inner loops. Exact wherever `isProductErrorExact(a, b, product)` holds;
 * beyond it the splitting overflows (the result is NaN or infinite) or the error is below the
 * smallest subnormal (the result is silently wrong), and the function does not check. Products of
 * two fp32 values never leave the domain: they are exact, and the error is 0. Source: Dekker 1971
 * with Veltkamp's splitting; the domain is that of Boldo's machine-checked proof, "Pitfalls of a
 * full floating-point proof: example on the formal proof of the Veltkamp/Dekker algorithms", 2006.
 */
export function productError(a: number, b: number, product: number): number {
  const aScaled = splitter * a;
  const aHigh = aScaled - (aScaled - a);
  const aLow = a - aHigh;
  const bScaled = splitter * b;
  const bHigh = bScaled - (bScaled - b);
  const bLow = b - bHigh;
  return aHigh * bHigh - product + aHigh * bLow + aLow * bHigh + aLow * bLow;
}

/**
 * Whether `productError(a, b, product)` is exact: |a| and |b| ≤ 2^995, |product| ≤ 2^1021, and
 * |product| ≥ 2^−969 unless an operand is zero. False for NaN and infinities.
 */
export function isProductErrorExact(a: number, b: number, product: number): boolean {
  if (!(Math.abs(a) <= largestOperand && Math.abs(b) <= largestOperand)) return false;
  const magnitude = Math.abs(product);
  if (magnitude >= smallestProduct) return magnitude <= largestProduct;
  return a === 0 || b === 0;
}
