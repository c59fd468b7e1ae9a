import { float64FromRational, scaledIntegerOf } from '../src/arith/index.js';
import { lazily } from '../src/reuse.js';

/**
 * Binary fixed-point arithmetic on BigInt: the last level of the oracles, where any precision can be
 * had. A number x is held as an integer X with x ≈ X · 2^-bits; every function says by how many
 * units (2^-bits) its result can miss the exact value.
 */

/** ⌊x · 2^shift⌋ for a shift of either sign. Exact when shift ≥ 0. */
export function shiftBigInt(x: bigint, shift: number): bigint {
  return shift >= 0 ? x << BigInt(shift) : x >> BigInt(-shift);
}

/** Number of bits of |x|; 0 for 0. */
export function bitLength(x: bigint): number {
  const hex = (x < 0n ? -x : x).toString(16);
  return hex === '0' ? 0 : 4 * (hex.length - 1) + (32 - Math.clz32(parseInt(hex[0], 16)));
}

/** atanh(1/n) · 2^bits, within `bits` units. */
function inverseHyperbolicTangent(n: bigint, bits: number): bigint {
  let power = (1n << BigInt(bits)) / n;
  let sum = power;
  for (let k = 3n; power !== 0n; k += 2n) {
    power /= n * n;
    sum += power / k;
  }
  return sum;
}

/** ln 2 · 2^bits, within 1 unit: the Machin-like formula 18 atanh 1/26 − 2 atanh 1/4801 + 8 atanh 1/8749. */
function ln2BySeries(bits: number): bigint {
  const guard = 16 + bitLength(BigInt(bits));
  const work = bits + guard;
  const sum =
    18n * inverseHyperbolicTangent(26n, work) -
    2n * inverseHyperbolicTangent(4801n, work) +
    8n * inverseHyperbolicTangent(8749n, work);
  return sum >> BigInt(guard);
}

/** Limit of bits, above the needs of the oracles except for extreme problems. */
const wideBits = 2048;
const wideLn2 = lazily(() => ln2BySeries(wideBits + 64));

/** ln 2 · 2^bits, within 1 unit. */
export function ln2(bits: number): bigint {
  // The unit of 64 bits further on is lost in the digits cut off, which are neither all 0 nor all 1.
  return bits <= wideBits ? wideLn2() >> BigInt(wideBits + 64 - bits) : ln2BySeries(bits);
}

/** log2(e) · 2^bits, within 1 unit. */
export function log2e(bits: number): bigint {
  // 1 / ln 2 with 8 guard bits: a unit of ln 2 moves the quotient by less than 2.1 units.
  const work = bits + 8;
  return ((1n << BigInt(2 * work)) / ln2(work)) >> 8n;
}

/**
 * A function that raises 2 to a fixed-point power: exp2(X) ≈ 2^(X · 2^-bits) · 2^bits, within 2 units
 * for X ≤ 0 and 2 · 2^⌈X · 2^-bits⌉ units above. Taylor's series of e^(r ln 2) after halving the
 * fraction r `halvings` times, then as many squarings; the guard bits hold one unit of error per
 * term, doubled by each squaring.
 */
export function createExp2(bits: number): (x: bigint) => bigint {
  const halvings = Math.ceil(Math.sqrt(bits));
  const guard = 2 * halvings + 32;
  const work = bits + guard;
  const workBits = BigInt(work);
  const one = 1n << workBits;
  const logarithm = ln2(work);
  const fractionMask = (1n << BigInt(bits)) - 1n;
  return (x) => {
    const whole = Number(x >> BigInt(bits));
    // Below this the result is less than one unit.
    if (whole < -bits - 1) return 0n;
    const fraction = (x & fractionMask) << BigInt(guard);
    const r = (fraction * logarithm) >> BigInt(work + halvings);
    let sum = one;
    let term = one;
    for (let k = 1n; term !== 0n; k += 1n) {
      term = (term * r) / (k << workBits);
      sum += term;
    }
    for (let i = 0; i < halvings; i++) sum = (sum * sum) >> workBits;
    return shiftBigInt(sum, whole - guard);
  };
}

/**
 * ln(x · 2^-bits) · 2^bits for x > 0, within 2 units. Newton's method on the exponential from
 * Math.log's start value; the last correction is checked to be so small that its neglected square is
 * below a unit, so nothing rests on Math.log's accuracy.
 */
export function naturalLogarithm(x: bigint, bits: number): bigint {
  if (x <= 0n) throw new RangeError('the logarithm of a number that is not positive');
  const guard = 32;
  const work = bits + guard;
  const shift = bitLength(x) - bits;
  // x = m · 2^shift with m in [0.5, 1)
  const m = shiftBigInt(x, guard - shift);
  const ln2Work = ln2(work);
  const exp2 = createExp2(work);
  const log2eWork = log2e(work);
  const leading = Number(shiftBigInt(m, 60 - work)) * 2 ** -60;
  let y = BigInt(Math.round(Math.log(leading) * 2 ** 52)) << BigInt(work - 52);
  for (;;) {
    const power = exp2((y * log2eWork) >> BigInt(work));
    const correction = ((m - power) << BigInt(work)) / power;
    y += correction;
    if (2 * bitLength(correction) < 2 * work - bits - 2) break;
  }
  // The correction r stands for ln(1 + r) = r − r²/2 + …, and r² is below a unit now.
  return (y + BigInt(shift) * ln2Work) >> BigInt(guard);
}

/** numerator / denominator · 2^exponent rounded to fp64 once, ties to even; denominator > 0. */
export function ratioToNumber(numerator: bigint, denominator: bigint, exponent: number): number {
  return exponent >= 0
    ? float64FromRational(numerator << BigInt(exponent), denominator)
    : float64FromRational(numerator, denominator << BigInt(-exponent));
}

/** Fraction bits: far more than fp64 keeps of any logarithm it returns. */
const logarithmBits = 80;

/** ln 2 with 12 bits more, for a power of two up to 2^1074 multiplies its error. */
const ln2Guarded = lazily(() => ln2(logarithmBits + 12));

/**
 * ln x for a finite x > 0 with a proven radius: within half an ulp of fp64 plus 2^-76 absolute. NaN
 * with radius NaN for every other x.
 */
export function naturalLogarithmOfNumber(x: number): {
  readonly value: number;
  readonly radius: number;
} {
  if (!(x > 0 && x < Infinity)) return { value: NaN, radius: NaN };
  // The row sum of a row with one weighty key.
  if (x === 1) return { value: 0, radius: 2 ** -76 };
  const { integer, exponent } = scaledIntegerOf(x);
  // x = m · 2^power with m in [1, 2), so that no precision is lost to a tiny or huge x.
  const power = bitLength(integer) - 1 + exponent;
  const mantissa = shiftBigInt(integer, exponent - power + logarithmBits);
  const value = ratioToNumber(
    naturalLogarithm(mantissa, logarithmBits) + ((BigInt(power) * ln2Guarded()) >> 12n),
    1n << BigInt(logarithmBits),
    0,
  );
  return { value, radius: 2 ** -53 * Math.abs(value) + 2 ** -76 };
}
