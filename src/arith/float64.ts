import type { RoundingMode } from '../formats/index.js';
import { isProductErrorExact, orderedSumError, productError } from './error-free.js';
import { bitLength, scaledIntegerOf } from './rational.js';

const fractionBits = 52;
const smallestExponent = -1074;
const overflowExponent = 1024;

/** Whether a magnitude between two numbers goes to the larger one. */
function roundsUp(
  isNegative: boolean,
  mode: RoundingMode,
  rest: { readonly isOdd: boolean; readonly toHalf: -1 | 0 | 1 },
): boolean {
  if (mode === 'nearest-even') return rest.toHalf > 0 || (rest.toHalf === 0 && rest.isOdd);
  if (mode === 'toward-zero') return false;
  return (mode === 'up') !== isNegative;
}

/** A magnitude that is beyond every finite number, rounded. */
function overflowed(isNegative: boolean, mode: RoundingMode): number {
  const away =
    mode === 'nearest-even' || (mode !== 'toward-zero' && (mode === 'up') !== isNegative);
  const magnitude = away ? Infinity : Number.MAX_VALUE;
  return isNegative ? -magnitude : magnitude;
}

/** 2^exponent times a significand of up to 2^53, exactly; exponent ≥ −1074. */
function scale(significand: number, exponent: number): number {
  return exponent >= -1022
    ? significand * 2 ** exponent
    : significand * 2 ** (exponent + 1000) * 2 ** -1000;
}

/**
 * integer · 2^exponent rounded once to fp64 in a mode, subnormals kept. The integer is not 0; in the result of an
 * operation that is not exact its lowest bit may stand for what follows, where it has more than 55 bits.
 */
export function roundScaledInteger(integer: bigint, exponent: number, mode: RoundingMode): number {
  const isNegative = integer < 0n;
  const magnitude = isNegative ? -integer : integer;
  const leading = bitLength(magnitude) - 1 + exponent;
  if (leading >= overflowExponent) return overflowed(isNegative, mode);
  const unit = Math.max(leading - fractionBits, smallestExponent);
  const drop = unit - exponent;
  if (drop <= 0) {
    const exact = scale(Number(magnitude << BigInt(-drop)), unit);
    return isNegative ? -exact : exact;
  }
  const kept = magnitude >> BigInt(drop);
  const rest = magnitude - (kept << BigInt(drop));
  const half = 1n << BigInt(drop - 1);
  const toHalf = rest > half ? 1 : rest === half ? 0 : -1;
  const isUp = rest !== 0n && roundsUp(isNegative, mode, { isOdd: (kept & 1n) === 1n, toHalf });
  const significand = Number(isUp ? kept + 1n : kept);
  if (unit + fractionBits + 1 >= overflowExponent && significand >= 2 ** 53)
    return overflowed(isNegative, mode);
  const result = scale(significand, unit);
  return isNegative ? -result : result;
}

/** The zero that addends of exact sum zero give (IEEE 754-2019, 6.3). */
function zeroSum(a: number, b: number, mode: RoundingMode): number {
  if (mode !== 'down') return a + b;
  return Object.is(a, 0) && Object.is(b, 0) ? 0 : -0;
}

/** a + b rounded once to fp64 in a mode: PTX `add{.rnd}.f64`. NaN as IEEE 754 has it. */
export function addFloat64(a: number, b: number, mode: RoundingMode): number {
  const sum = a + b;
  if (mode === 'nearest-even' || !Number.isFinite(a) || !Number.isFinite(b)) return sum;
  if (sum === 0) return zeroSum(a, b, mode);
  const [x, y] = [scaledIntegerOf(a), scaledIntegerOf(b)];
  const exponent = Math.min(x.exponent, y.exponent);
  const integer =
    (x.integer << BigInt(x.exponent - exponent)) + (y.integer << BigInt(y.exponent - exponent));
  return roundScaledInteger(integer, exponent, mode);
}

/** a · b rounded once to fp64 in a mode: PTX `mul{.rnd}.f64`. */
export function multiplyFloat64(a: number, b: number, mode: RoundingMode): number {
  const product = a * b;
  if (mode === 'nearest-even' || !Number.isFinite(a) || !Number.isFinite(b)) return product;
  if (a === 0 || b === 0) return product;
  const [x, y] = [scaledIntegerOf(a), scaledIntegerOf(b)];
  return roundScaledInteger(x.integer * y.integer, x.exponent + y.exponent, mode);
}

/**
 * The sum of two numbers rounded to the one of its two neighbours that has an odd last bit, or exact. Rounding it to
 * a format of up to 51 bits rounds the exact sum (Boldo and Melquiond 2008).
 */
export function sumToOdd(a: number, b: number): number {
  const sum = a + b;
  if (!Number.isFinite(sum)) return sum;
  const error = orderedSumError(a, b, sum);
  if (error === 0) return sum;
  words64[0] = sum;
  if ((low32[lowWord] & 1) === 1) return sum;
  // The exact sum lies between this number and its neighbour on the error's side, which is odd.
  const grows = error > 0 === sum > 0;
  pattern64[0] += grows ? 1n : -1n;
  return words64[0];
}

// Written and read back within one call: they hold no state between calls.
const words64 = new Float64Array([1]);
const pattern64 = new BigUint64Array(words64.buffer);
const low32 = new Uint32Array(words64.buffer);
const lowWord = low32[0] === 0 ? 0 : 1;

const smallestSafe = 2 ** -900;
const largestSafe = 2 ** 1000;

/**
 * a · b + c rounded once to fp64 in a mode: PTX `fma.rnd.f64`. To nearest where nothing over- or underflows
 * by the method of Boldo and Melquiond ("Emulation of FMA and correctly rounded sums: proved algorithms using
 * rounding to odd", 2008), otherwise by exact integers.
 */
export function fusedMultiplyAddFloat64(
  a: number,
  b: number,
  c: number,
  mode: RoundingMode,
): number {
  if (!Number.isFinite(a) || !Number.isFinite(b)) return a * b + c;
  if (!Number.isFinite(c)) return c;
  const product = a * b;
  if (a === 0 || b === 0) return addFloat64(product, c, mode);
  const size = Math.max(Math.abs(product), Math.abs(c));
  const least = Math.min(Math.abs(product), c === 0 ? 1 : Math.abs(c));
  const isPlain = size < largestSafe && least > smallestSafe && isProductErrorExact(a, b, product);
  if (mode === 'nearest-even' && isPlain)
    return fuseToNearest(product, productError(a, b, product), c);
  const [x, y, z] = [scaledIntegerOf(a), scaledIntegerOf(b), scaledIntegerOf(c)];
  const productExponent = x.exponent + y.exponent;
  const exponent = Math.min(productExponent, z.exponent);
  const integer =
    ((x.integer * y.integer) << BigInt(productExponent - exponent)) +
    (z.integer << BigInt(z.exponent - exponent));
  if (integer === 0n) return zeroSum(product, c, mode);
  return roundScaledInteger(integer, exponent, mode);
}

/** product + error + c rounded once to nearest, where error is that of a rounded product. */
function fuseToNearest(product: number, error: number, c: number): number {
  const low = c + error;
  const lowError = orderedSumError(c, error, low);
  const high = product + low;
  const highError = orderedSumError(product, low, high);
  if (high === 0) return highError + lowError === 0 ? product + c : highError + lowError;
  return high + sumToOdd(lowError, highError);
}

/** a / b rounded once to fp64 in a mode: PTX `div.rnd.f64`. */
export function divideFloat64(a: number, b: number, mode: RoundingMode): number {
  const quotient = a / b;
  if (mode === 'nearest-even' || !Number.isFinite(a) || !Number.isFinite(b)) return quotient;
  if (a === 0 || b === 0) return quotient;
  const [x, y] = [scaledIntegerOf(a), scaledIntegerOf(b)];
  const isNegative = x.integer < 0n !== y.integer < 0n;
  const [top, bottom] = [magnitudeOf(x.integer), magnitudeOf(y.integer)];
  // The quotient has at least 64 bits.
  const extra = Math.max(bitLength(bottom) - bitLength(top), 0) + 64;
  const whole = (top << BigInt(extra)) / bottom;
  const isExact = whole * bottom === top << BigInt(extra);
  const magnitude = (whole << 1n) | (isExact ? 0n : 1n);
  const exponent = x.exponent - y.exponent - extra - 1;
  return roundScaledInteger(isNegative ? -magnitude : magnitude, exponent, mode);
}

function magnitudeOf(value: bigint): bigint {
  return value < 0n ? -value : value;
}

/** √a rounded once to fp64 in a mode: PTX `sqrt.rnd.f64`. Negative numbers give NaN, −0 gives −0. */
export function squareRootFloat64(a: number, mode: RoundingMode): number {
  const root = Math.sqrt(a);
  if (mode === 'nearest-even' || !Number.isFinite(a) || a <= 0) return root;
  const { integer, exponent } = scaledIntegerOf(a);
  const shift = 130 + (Math.abs(exponent) % 2);
  const scaled = integer << BigInt(shift);
  const whole = integerRoot(scaled);
  const magnitude = (whole << 1n) | (whole * whole === scaled ? 0n : 1n);
  return roundScaledInteger(magnitude, (exponent - shift) / 2 - 1, mode);
}

/** ⌊√value⌋ by Newton's method. */
function integerRoot(value: bigint): bigint {
  let root = 1n << BigInt(Math.ceil(bitLength(value) / 2));
  for (;;) {
    const next = (root + value / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}
