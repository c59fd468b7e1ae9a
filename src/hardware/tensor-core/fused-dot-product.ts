import { encode, formats, powerOfTwo, round } from '../../formats/index.js';
import { RequestError } from '../../request-error.js';
import type { AccumulatorFormat, TensorCoreArithmetic } from './arithmetic.js';
import { decodeOperand, type Operand, type OperandFormat } from './operand.js';

/** Parameters of a fused sum: three numbers and the accumulator's format. */
export type FusedSumArithmetic = Pick<
  TensorCoreArithmetic,
  'accumulator' | 'alignedFractionBits' | 'resultFractionBits'
>;

const accumulators: Readonly<Record<AccumulatorFormat, OperandFormat>> = {
  fp32: { ...formats.fp32, name: 'fp32' },
  fp16: { ...formats.fp16, name: 'fp16' },
};

/**
 * The smallest E of a fused sum: no unit is finer than 2^-158 where F is 25. Only sums of products
 * below 2^-133, of bf16 or tf32 and without C, can tell. Measured on an H200 (fixtures/silicon/sm_90/
 * mma, the last executions of each bf16 and tf32 instruction), assumed elsewhere. MMA-Sim has −126.
 */
export const exponentFloor = -133;

/**
 * c + Σ a[i]·b[i] in one fused sum, as a tensor core computes it: the bit pattern of the result, in
 * the accumulator's format, from decoded operands and the bit pattern of c in that format.
 *
 * 1. The product of two significands is exact and is not normalised; exponents add. (So the exponent
 *    of a product in [2, 4) is one less than that of its value, and that of a subnormal operand's
 *    product may be larger.)
 * 2. E is the largest exponent of the products and c that are not zero, but at least −133. A product
 *    with a zero operand takes no part, however large the other operand.
 * 3. Each of them is truncated toward zero to a multiple of 2^(E − F).
 * 4. The truncated terms are summed exactly, so their order does not matter.
 * 5. fp32: the sum is truncated toward zero to the fraction bits that the result keeps; subnormals
 *    stay, and from 2^128 on it is infinite. fp16: the sum is rounded to nearest even. No result is
 *    −0.
 * 6. A NaN operand, ∞·0 and ∞ − ∞ give the NaN 0x7fffffff (fp16: 0x7fff); else an infinity stays.
 *
 * Reproduces every result captured on an H200 and published of a B200. The lengths of `a` and `b`
 * decide how many products the sum takes; throws a RequestError when they differ or c is no pattern.
 */
export function fusedDotProduct(
  arithmetic: FusedSumArithmetic,
  a: readonly Operand[],
  b: readonly Operand[],
  c: number,
): number {
  if (a.length !== b.length)
    throw new RequestError(
      `a has ${a.length} operands and b has ${b.length}; pass as many of each as the sum has products`,
    );
  const terms = a.map((x, i) => multiply(x, b[i]));
  terms.push(decodeOperand(accumulators[arithmetic.accumulator], c));

  const special = sumOfSpecials(terms);
  const { accumulator, resultFractionBits } = arithmetic;
  if (special !== 0) return roundFusedSum(accumulator, resultFractionBits, special);

  let largest = -Infinity;
  for (const { significand, exponent } of terms)
    if (significand !== 0) largest = Math.max(largest, exponent);
  if (largest === -Infinity) return 0;
  largest = Math.max(largest, exponentFloor);

  // Every term is below 2^27 units, so the sum is an exact integer.
  const unitsPerOne = arithmetic.alignedFractionBits - largest;
  let units = 0;
  for (const { significand, exponent } of terms)
    units += Math.trunc(significand * powerOfTwo(exponent + unitsPerOne));
  return roundFusedSum(accumulator, resultFractionBits, units * powerOfTwo(-unitsPerOne));
}

function multiply(a: Operand, b: Operand): Operand {
  return { significand: a.significand * b.significand, exponent: a.exponent + b.exponent };
}

/** 0 when every term is finite, else the NaN or infinity that they add up to. */
function sumOfSpecials(terms: readonly Operand[]): number {
  let sum = 0;
  for (const { significand } of terms) if (!Number.isFinite(significand)) sum += significand;
  return sum;
}

/**
 * The pattern of an exact sum, or of an infinity or NaN, in the format of an accumulator: rules 5 and 6 of {@link fusedDotProduct}.
 *
 * @param fractionBits those that an fp32 result keeps
 */
export function roundFusedSum(
  accumulator: AccumulatorFormat,
  fractionBits: number,
  sum: number,
): number {
  const format = formats[accumulator];
  const isTruncated = accumulator === 'fp32' && Number.isFinite(sum);
  const bits = encode(format, isTruncated ? truncate(sum, fractionBits) : sum);
  return bits === 2 ** (format.storageBits - 1) ? 0 : bits;
}

/** The fp32 number with this many fraction bits that is next toward zero, or an infinity. */
function truncate(exact: number, fractionBits: number): number {
  if (Math.abs(exact) >= 2 ** 128) return exact < 0 ? -Infinity : Infinity;
  const format = { ...formats.fp32, precision: fractionBits + 1 };
  return round(format, exact, { rounding: 'toward-zero' });
}
