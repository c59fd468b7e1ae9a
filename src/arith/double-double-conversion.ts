import { RequestError } from '../request-error.js';
import { doubleDouble, type DoubleDouble } from './double-double.js';
import {
  float64FromRational,
  rationalOfFloat64,
  rationalOfScaledInteger,
  scaledIntegerOf,
  type Rational,
} from './rational.js';

/** Values with a larger decimal exponent overflow fp64, with a smaller one round to zero. */
const largestDecimalExponent = 400;

const decimalPattern = /^([+-]?)(?:(\d+)(?:\.(\d*))?|\.(\d+))(?:[eE]([+-]?\d+))?$/;

/**
 * The exact value of a double-double as a fraction in lowest terms; the words need not be
 * normalised. Throws a RequestError when either word is an infinity or NaN.
 */
export function rationalOfDoubleDouble(x: DoubleDouble): Rational {
  const high = scaledIntegerOf(x.high);
  const low = scaledIntegerOf(x.low);
  const exponent = Math.min(high.exponent, low.exponent);
  const integer =
    (high.integer << BigInt(high.exponent - exponent)) +
    (low.integer << BigInt(low.exponent - exponent));
  return rationalOfScaledInteger({ integer, exponent });
}

/**
 * The double-double nearest to numerator / denominator word by word: high is the fraction rounded to
 * nearest even and low the rest rounded to nearest even, so the relative error is at most u²
 * (u = 2^−53) while low is not subnormal. Overflow gives an infinity. Throws a RequestError when the
 * denominator is zero.
 */
export function doubleDoubleFromRational(numerator: bigint, denominator: bigint): DoubleDouble {
  const high = float64FromRational(numerator, denominator);
  if (!Number.isFinite(high)) return doubleDouble(high);
  const rounded = rationalOfFloat64(high);
  const rest = numerator * rounded.denominator - rounded.numerator * denominator;
  return { high, low: float64FromRational(rest, denominator * rounded.denominator) };
}

/**
 * The exact value in decimal scientific notation, all digits and no trailing zeros, such as
 * `-1.25e-3`; `0`, `-0`, `Infinity`, `-Infinity` and `NaN` for the specials.
 * `doubleDoubleFromDecimal` reads every one of them back to the same value.
 */
export function doubleDoubleToDecimal(x: DoubleDouble): string {
  if (!Number.isFinite(x.high)) return String(x.high);
  const { numerator, denominator } = rationalOfDoubleDouble(x);
  if (numerator === 0n) return Object.is(x.high, -0) ? '-0' : '0';
  const sign = numerator < 0n ? '-' : '';
  // The denominator is 2^n: n decimal places are enough, since numerator/2^n = numerator·5^n/10^n.
  const places = denominator.toString(2).length - 1;
  const digits = ((numerator < 0n ? -numerator : numerator) * 5n ** BigInt(places)).toString();
  const fraction = digits.slice(1).replace(/0+$/, '');
  const exponent = digits.length - 1 - places;
  return `${sign}${digits[0]}${fraction === '' ? '' : `.${fraction}`}e${exponent}`;
}

/**
 * The double-double nearest to a decimal number, rounded as in `doubleDoubleFromRational`.
 *
 * Reads an optional sign, digits with an optional point and an optional exponent, or `Infinity` or
 * `NaN`. Throws a RequestError for anything else.
 */
export function doubleDoubleFromDecimal(text: string): DoubleDouble {
  if (/^[+-]?(Infinity|NaN)$/.test(text)) return doubleDouble(Number(text));
  const match = decimalPattern.exec(text);
  if (match === null) {
    throw new RequestError(
      `${JSON.stringify(text)} is not a decimal number; write digits such as -12.5 or 1.25e-3`,
    );
  }
  const [, sign, whole = '', afterWhole = '', alone = '', exponentText = '0'] = match;
  const fraction = afterWhole + alone;
  const digits = (whole + fraction).replace(/^0+/, '');
  const zero = sign === '-' ? -0 : 0;
  if (digits === '') return doubleDouble(zero);
  const exponent = Number(exponentText) - fraction.length;
  const leadingExponent = exponent + digits.length - 1;
  if (leadingExponent > largestDecimalExponent) {
    return doubleDouble(sign === '-' ? -Infinity : Infinity);
  }
  if (leadingExponent < -largestDecimalExponent) return doubleDouble(zero);
  const integer = BigInt(sign === '-' ? `-${digits}` : digits);
  const result =
    exponent >= 0
      ? doubleDoubleFromRational(integer * 10n ** BigInt(exponent), 1n)
      : doubleDoubleFromRational(integer, 10n ** BigInt(-exponent));
  return result.high === 0 ? doubleDouble(zero) : result;
}
