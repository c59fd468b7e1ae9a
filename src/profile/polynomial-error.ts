import { createFloat64Exp2 } from '../../oracles/index.js';
import { lazily } from '../lazily.js';

const exp2 = lazily(createFloat64Exp2);

/** Σ coefficients[k]·f^k by Horner's rule in fp64. */
function horner(coefficients: readonly number[], f: number): number {
  return coefficients.reduceRight((sum, c) => sum * f + c, 0);
}

/**
 * p(f)/2^f − 1 for a polynomial p, coefficients from c0 up, and 0 ≤ |f| ≤ 1. Nothing is rounded to fp32;
 * the fp64 evaluation errs by less than 2^-49 for the polynomials of degree up to 8 that come near 2^f.
 */
export function relativeError(coefficients: readonly number[], f: number): number {
  return horner(coefficients, f) * exp2()(-f) - 1;
}

/** A fraction and the relative error there. */
export interface ErrorAt {
  readonly f: number;
  readonly error: number;
}

/** Points between which the derivative's sign is looked at: far more than it has zeros. */
const intervals = 4096;

/**
 * The local extremes of the relative error on an interval within [−1, 1], its ends included, in
 * ascending order. They are the zeros of p′ − p·ln 2, a polynomial of p's degree, found by bisection to
 * fp64.
 */
export function errorExtremes(coefficients: readonly number[], from = 0, to = 1): ErrorAt[] {
  const slope = coefficients.map((c, k) => (k + 1) * (coefficients[k + 1] ?? 0) - c * Math.LN2);
  const at = (f: number): ErrorAt => ({ f, error: relativeError(coefficients, f) });
  const points = [from];
  for (let i = 0; i < intervals; i++) {
    let low = from + ((to - from) * i) / intervals;
    let high = from + ((to - from) * (i + 1)) / intervals;
    const sign = Math.sign(horner(slope, low));
    if (sign === Math.sign(horner(slope, high)) || sign === 0) continue;
    for (;;) {
      const middle = (low + high) / 2;
      if (middle <= low || middle >= high) break;
      if (Math.sign(horner(slope, middle)) === sign) low = middle;
      else high = middle;
    }
    if (high < to && high > from) points.push(high);
  }
  return [...points, to].map(at);
}

/** The extreme with the largest relative error in magnitude on an interval. */
export function largestRelativeError(coefficients: readonly number[], from = 0, to = 1): ErrorAt {
  return errorExtremes(coefficients, from, to).reduce((worst, next) =>
    Math.abs(next.error) > Math.abs(worst.error) ? next : worst,
  );
}
