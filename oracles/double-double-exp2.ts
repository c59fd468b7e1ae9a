import {
  addDoubleDouble,
  addFloat64ToDoubleDouble,
  doubleDouble,
  doubleDoubleFromRational,
  multiplyDoubleDouble,
  type DoubleDouble,
} from '../src/arith/index.js';
import { lazily } from '../src/lazily.js';
import { createExp2, ln2 } from './fixed-point.js';

/** 2^y as fraction · 2^exponent, the fraction in [0.98, 2.03). */
export interface ScaledDoubleDouble {
  readonly fraction: DoubleDouble;
  readonly exponent: number;
}

/** Fractions of an octave in the table. */
const steps = 32;

/** The Taylor polynomial's degree: its truncation is below 2^-127 for |t| ≤ ln 2 / 64. */
const degree = 13;

/** Proven relative error of `doubleDoubleExp2`. */
export const doubleDoubleExp2Error = 2 ** -100;

interface Exp2Constants {
  /** 2^(i/32). */
  readonly table: readonly DoubleDouble[];
  /** ln 2. */
  readonly logarithm: DoubleDouble;
  /** 1/k! for k = 1 … degree. */
  readonly coefficients: readonly DoubleDouble[];
}

/** The constants, which take fixed-point arithmetic of 200 bits. */
const exp2Constants = lazily((): Exp2Constants => {
  const bits = 200;
  const one = 1n << BigInt(bits);
  const exp2 = createExp2(bits);
  const table = Array.from({ length: steps }, (_, i) =>
    doubleDoubleFromRational(exp2((BigInt(i) << BigInt(bits)) / BigInt(steps)), one),
  );
  const coefficients: DoubleDouble[] = [];
  let factorial = 1n;
  for (let k = 1; k <= degree; k++) {
    factorial *= BigInt(k);
    coefficients.push(doubleDoubleFromRational(1n, factorial));
  }
  return { table, logarithm: doubleDoubleFromRational(ln2(bits), one), coefficients };
});

/**
 * 2^y in double-double arithmetic, |y| ≤ 2^41, with relative error at most 2^-100 (y itself taken as
 * exact). y = n + i/32 + r, |r| ≤ 1/64; 2^(i/32) from a table made in fixed point (error 2^-106);
 * e^(r ln 2) by Horner's rule. Errors, u = 2^-53: subtraction 3u²·|r| and product with ln 2 6u²·|r|,
 * both below u²/5; the polynomial's last sum 3u² and 8u²·|t| of the step before; the final product
 * 5u²; the table u²: together below 12u² < 2^-102.
 */
export function doubleDoubleExp2(y: DoubleDouble): ScaledDoubleDouble {
  const { table, logarithm, coefficients } = exp2Constants();
  const step = Math.round(y.high * steps);
  const exponent = Math.floor(step / steps);
  const r = addFloat64ToDoubleDouble(y, -step / steps);
  const t = multiplyDoubleDouble(r, logarithm);
  let polynomial = coefficients[degree - 1];
  for (let k = degree - 2; k >= 0; k--)
    polynomial = addDoubleDouble(multiplyDoubleDouble(polynomial, t), coefficients[k]);
  polynomial = addDoubleDouble(multiplyDoubleDouble(polynomial, t), doubleDouble(1));
  return {
    fraction: multiplyDoubleDouble(table[step - exponent * steps], polynomial),
    exponent,
  };
}
