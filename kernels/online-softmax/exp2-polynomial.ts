import {
  addFloat32,
  type Float32Options,
  fusedMultiplyAddFloat32,
  subtractFloat32,
} from '../../src/arith/index.js';
import { formats } from '../../src/formats/index.js';
import { RequestError } from '../../src/request-error.js';
import { type ArrayFunction, createScalarEngine } from '../../src/simd/index.js';

/** A degree of the polynomial for which FlashAttention-4 has coefficients; the forward runs 3. */
export type PolynomialDegree = 1 | 2 | 3 | 4 | 5;

/**
 * FlashAttention-4's coefficients for 2^f on 0 ≤ f ≤ 1, by degree, from c0 up; each is an fp32
 * number. Source: `POLY_EX2` in flash_attn/cute/utils.py of Dao-AILab/flash-attention.
 */
export const exp2Coefficients: Readonly<Record<PolynomialDegree, readonly number[]>> = {
  1: [1, 0.922497093677520751953125],
  2: [1, 0.6657850742340087890625, 0.330107033252716064453125],
  3: [1, 0.695146143436431884765625, 0.227564394474029541015625, 0.077119089663028717041015625],
  4: [
    1, 0.693042695522308349609375, 0.2412912547588348388671875, 0.052225358784198760986328125,
    0.013434938155114650726318359375,
  ],
  5: [
    1, 0.693151414394378662109375, 0.24016360938549041748046875, 0.055802188813686370849609375,
    9.01452265679836273193359375e-3, 1.86810153536498546600341796875e-3,
  ],
};

/** The error of FlashAttention-4's software exp2 of one degree, relative to 2^x. */
export interface PolynomialError {
  /** Largest magnitude. */
  readonly largest: number;
  /** Mean over all fractions of x, signed. */
  readonly mean: number;
}

/**
 * By degree: the largest error over all fp32 numbers of [−126, 0] (`flashproof profile exp2`, rounded
 * up), and the mean of p(f)/2^f − 1 over f in [0, 1]. An exponent above 0 has the fraction of one below,
 * and so its error, up to 127, where the kernel's contract ends.
 */
export const polynomialErrors: Readonly<Record<PolynomialDegree, PolynomialError>> = {
  1: { largest: 3.87515e-2, mean: 1.593e-2 },
  2: { largest: 2.07558e-3, mean: -8.983e-8 },
  3: { largest: 8.76876e-5, mean: 8.237e-6 },
  4: { largest: 3.04866e-6, mean: -3.167e-8 },
  5: { largest: 1.55674e-7, mean: 3.36e-9 },
};

/** Inputs are raised to this. */
const smallestInput = -127;
/** 2^23 + 2^22: an fp32 number whose ulp is 1 and stays 1 when up to 2^22 is added. */
const toInteger = 2 ** 23 + 2 ** 22;
const floorAddition: Float32Options = { rounding: 'down', flushToZero: true };

// Written and read back within one call: they hold no state between calls.
const scratch = new Float32Array(1);
const scratchBits = new Int32Array(scratch.buffer);

/** The fp32 bit pattern as an int32; every NaN is the one that the GPU's arithmetic delivers. */
function bitsOf(value: number): number {
  if (Number.isNaN(value)) return formats.fp32.canonicalNan;
  scratch[0] = value;
  return scratchBits[0];
}

function fromBits(bits: number): number {
  scratchBits[0] = bits;
  return scratch[0];
}

/** The parts into which the software exp2 splits its input. */
export interface RangeReduction {
  /**
   * The integer part as the addend of the bit pattern of 2^fraction, an int32: the bits of r
   * shifted left by 23. For x ≤ 127 it is ⌊x⌋·2^23.
   */
  readonly integerBits: number;
  /**
   * The rest, an fp32 number: in [0, 1], and 1 only where x + 1 rounds to it, for −2^-25 ≤ x < 0 in
   * the normal range. NaN for +∞; for x ≥ 2^22, where the sum with 2^23 + 2^22 has a unit above 1,
   * it may be larger.
   */
  readonly fraction: number;
}

/**
 * FlashAttention-4's range reduction of an fp32 number, operation by operation:
 *
 *   x' = max(x, −127)              NaN gives −127, as PTX max does
 *   r  = add.rm.ftz(x', 2^23 + 2^22)   towards −∞, subnormals flushed
 *   b  = sub.rn(r, 2^23 + 2^22)
 *   f  = sub.rn(x', b)
 *
 * The additions are those of fp32, so that a tiny negative x has b = −1 and f = 1. FTZ in the other
 * operations, which FlashAttention-4's packed form may have, changes no result of the exp2. Source:
 * `ex2_emulation` in flash_attn/cute/utils.py.
 *
 * @param addition how the first addition rounds; default as above
 */
export function reduceRange(x: number, addition: Float32Options = floorAddition): RangeReduction {
  const clamped = x > smallestInput ? x : smallestInput;
  const rounded = addFloat32(clamped, toInteger, addition);
  const integer = subtractFloat32(rounded, toInteger);
  return {
    integerBits: bitsOf(rounded) << 23,
    fraction: subtractFloat32(clamped, integer),
  };
}

function coefficientsOf(degree: PolynomialDegree): readonly number[] {
  const coefficients = exp2Coefficients[degree];
  if (coefficients === undefined)
    throw new RequestError(
      `no exp2 polynomial of degree ${String(degree)}; FlashAttention-4 has degrees 1 to 5`,
    );
  return coefficients;
}

/** Horner's rule with one fused multiply-add (rn, subnormals kept) per coefficient. */
function evaluatePolynomial(coefficients: readonly number[], fraction: number): number {
  const degree = coefficients.length - 1;
  let p = coefficients[degree];
  for (let k = degree - 1; k >= 0; k--) p = fusedMultiplyAddFloat32(p, fraction, coefficients[k]);
  return p;
}

/**
 * FlashAttention-4's software exp2 of an fp32 number as an unsigned fp32 bit pattern: the range
 * reduction, the polynomial, and an int32 addition of their bits that wraps around. Equal to an
 * H200's instructions for all 2^32 inputs and every degree (fixtures/silicon/sm_90).
 *
 * Its corners, which are the function's own and no errors here: x ≤ −127, −∞ and NaN give +0, so
 * that a NaN is lost; −127 < x < −126 gives a subnormal pattern that is not 2^x; a tiny negative x
 * gives the polynomial at 1, halved (0.99991 in degree 3); x ≥ 128 is outside the contract and gives
 * the result of the wrap-around: ∞ at 128, a NaN at +∞, 0.5 at the largest finite number.
 *
 * @param degree default 3, as the forward runs it
 * @throws RequestError for a degree other than 1 to 5.
 */
export function exp2PolynomialBits(x: number, degree: PolynomialDegree = 3): number {
  return assembledBits(reduceRange(x), coefficientsOf(degree));
}

/** The bits of the polynomial of the fraction plus those of the integer, an int32 that wraps around. */
function assembledBits(
  { integerBits, fraction }: RangeReduction,
  coefficients: readonly number[],
): number {
  return (integerBits + bitsOf(evaluatePolynomial(coefficients, fraction))) >>> 0;
}

/**
 * The software exp2 from a reduced input, with given coefficients: Horner's rule with one fused
 * multiply-add each, then the int32 addition of the integer's bits. Returns the fp32 number.
 *
 * @param coefficients fp32 numbers from c0 up
 */
export function exp2OfReduced(reduced: RangeReduction, coefficients: readonly number[]): number {
  return fromBits(assembledBits(reduced, coefficients));
}

/** `exp2PolynomialBits` as the fp32 number with that bit pattern. */
export function exp2Polynomial(x: number, degree: PolynomialDegree = 3): number {
  return fromBits(exp2PolynomialBits(x, degree));
}

const bytesPerCoefficient = 8;

/**
 * FlashAttention-4's software exp2 on arrays of fp32 bit patterns, in WebAssembly: for every input
 * the bits of `exp2PolynomialBits`, ten times as fast. Each call makes an instance with memory of
 * its own; make one per thread.
 *
 * The multiply-adds are rounded to fp64 before fp32. That could matter only where the fp64 sum is a
 * midpoint of two fp32 numbers, and changes no result: evaluated for every fp32 fraction from 2^-25
 * to 1 in every degree, below 2^-25 a product is less than a quarter of an ulp of the coefficient it
 * is added to, and all 2^32 inputs have the fingerprint of an H200 in every degree.
 *
 * @param degree default 3, as the forward runs it
 * @param coefficients default FlashAttention-4's of that degree; fp32 numbers from c0 up
 */
export function createExp2PolynomialArray(
  degree: PolynomialDegree = 3,
  coefficients: readonly number[] = exp2Coefficients[degree],
): ArrayFunction {
  const engine = createScalarEngine(coefficients.length * bytesPerCoefficient);
  const address = engine.place(Float64Array.from(coefficients));
  const highest = coefficients.length - 1;
  return engine.arrayFunction((inputs, results, count) =>
    engine.kernels.exp2Polynomial(inputs, results, count, address, highest),
  );
}
