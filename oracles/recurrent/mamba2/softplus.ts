import { lazily } from '../../../src/reuse.js';
import { log2eWords } from '../../attention/logarithm-words.js';
import { createFloat64Exp2 } from '../../exp2.js';

const u = 2 ** -53;

const exp2 = lazily(createFloat64Exp2);

/** Exponents beyond this are refused or go to 0: e^690 < 2^1000. */
export const largestExponent = 690;

/** e^x for |x| ≤ {@link largestExponent}, relative error below {@link exponentialError}. */
export const exponential = (x: number): number => exp2()(x * log2eWords().high);

/** The relative error of {@link exponential}: octaves err by 2.01u of themselves, 2^x by 3u (docs/theory/recurrent-oracle.md, decays). */
export const exponentialError = (x: number): number => (4.2 + 2.2 * Math.abs(x)) * u;

/** Terms of the series of atanh s: 9^-18 / 37 is below u/32. */
const terms = 18;

/** 1/(2k + 1) from the last term to the first. */
const coefficients = Array.from({ length: terms }, (_, k) => 1 / (2 * (terms - 1 - k) + 1));

/**
 * log(1 + y) for 0 < y ≤ 1 as 2 atanh s, s = y/(2 + y) ≤ 1/3. Relative error below 6u: s errs by 2u, the series, all of whose terms are positive, by
 * 1.5u by its roundings, 0.3u by s² and u/16 by its end, and the product with 2s by u.
 */
function logarithmOfOneAnd(y: number): number {
  const s = y / (2 + y);
  const square = s * s;
  let sum = 0;
  for (const coefficient of coefficients) sum = sum * square + coefficient;
  return 2 * s * sum;
}

/**
 * log(1 + e^x) for |x| ≤ {@link largestExponent}, relative error below {@link softplusError}: of x ≤ 0 by the logarithm of 1 + e^x, whose condition is at
 * most 1, and of others as x + log(1 + e^−x), a sum of positive numbers.
 */
export function softplus(x: number): number {
  if (x <= 0) return logarithmOfOneAnd(exponential(x));
  return x + logarithmOfOneAnd(exponential(-x));
}

/** The relative error of {@link softplus} of an x that was rounded once: |x|u more, as the derivative of log softplus is at most 1. */
export const softplusError = (x: number): number => exponentialError(x) + (7 + Math.abs(x)) * u;

/** A number and its relative error. */
export interface ErringNumber {
  readonly value: number;
  readonly error: number;
}

/**
 * σ(x) for |x| ≤ {@link largestExponent}, relative error that of the exponential, 4u, and |x|u for an x that was rounded once: of x < 0 by e^x / (1 + e^x),
 * of others by 1 / (1 + e^−x).
 */
export function sigmoid(x: number): ErringNumber {
  const power = exponential(-Math.abs(x));
  const error = exponentialError(x) + (4 + Math.abs(x)) * u;
  return { value: (x < 0 ? power : 1) / (1 + power), error };
}

/** z σ(z) with a radius. */
export interface GateFactor {
  readonly value: number;
  readonly radius: number;
}

/**
 * z σ(z) = z / (1 + e^−z), of z < 0 z e^z / (1 + e^z), relative error that of the exponential and 3u; below −{@link largestExponent} 0, as it is smaller than
 * 2^-980.
 */
export function gateFactor(z: number): GateFactor {
  if (z < -largestExponent) return { value: 0, radius: 2 ** -980 };
  const power = exponential(-Math.min(Math.abs(z), largestExponent));
  const value = z < 0 ? (z * power) / (1 + power) : z / (1 + power);
  return {
    value,
    radius: Math.abs(value) * (exponentialError(Math.min(Math.abs(z), largestExponent)) + 4 * u),
  };
}
