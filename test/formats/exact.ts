import type { NumberFormat, RoundingOptions } from '../../src/formats/index.js';

/**
 * The reference for the tests of this folder: every finite fp64 number is an integer count of
 * 2^-1074, and all arithmetic on such counts is done in bigints.
 */

const view = new DataView(new ArrayBuffer(8));

export function pattern64(x: number): bigint {
  view.setFloat64(0, x);
  return view.getBigUint64(0);
}

export function fromPattern64(pattern: bigint): number {
  view.setBigUint64(0, BigInt.asUintN(64, pattern));
  return view.getFloat64(0);
}

export function pattern32(x: number): number {
  view.setFloat32(0, x);
  return view.getUint32(0);
}

export function fromPattern32(pattern: number): number {
  view.setUint32(0, pattern);
  return view.getFloat32(0);
}

/** |x| / 2^-1074 for finite x. */
export function count(x: number): bigint {
  const pattern = pattern64(Math.abs(x));
  const field = pattern >> 52n;
  const fraction = pattern & ((1n << 52n) - 1n);
  return field === 0n ? fraction : ((1n << 52n) | fraction) << (field - 1n);
}

/** The count of 2^exponent. */
export function countOfPower(exponent: number): bigint {
  return 1n << BigInt(exponent + 1074);
}

/** The binary digits of a positive integer. */
function bitLength(n: bigint): number {
  const digits = n.toString(16);
  return 4 * digits.length - Math.clz32(parseInt(digits[0], 16)) + 28;
}

/** The fp64 number of a count that is exactly one. */
export function fromCount(n: bigint): number {
  const excess = Math.max(bitLength(n) - 53, 0);
  const significand = n >> BigInt(excess);
  if (significand << BigInt(excess) !== n) throw new Error('not an fp64 number');
  // In two steps, neither of which rounds: 2^excess can be beyond the range.
  const half = Math.floor(excess / 2);
  return Number(significand) * 2 ** -1074 * 2 ** half * 2 ** (excess - half);
}

/**
 * The value of a bit pattern as IEEE 754-2019 section 3.4 (and OFP8 for e4m3) spells it out, field
 * by field; a string for what is no finite number.
 */
export function parsePattern(
  format: NumberFormat,
  bits: bigint,
): { negative: boolean; count: bigint | 'inf' | 'nan' } {
  const text = bits.toString(2).padStart(format.storageBits, '0');
  const negative = text[0] === '1';
  const exponentField = text.slice(1, 1 + format.exponentBits);
  const fractionField = text.slice(
    1 + format.exponentBits,
    format.storageBits - format.paddingBits,
  );
  const fraction = BigInt(`0b${fractionField}`);
  const width = fractionField.length;
  const allOnes = !exponentField.includes('0');
  if (allOnes && format.specials === 'ieee') {
    return { negative, count: fraction === 0n ? 'inf' : 'nan' };
  }
  if (allOnes && format.specials === 'fn' && !fractionField.includes('0'))
    return { negative, count: 'nan' };
  const bias = 2 ** (format.exponentBits - 1) - 1;
  const exponent = parseInt(exponentField, 2);
  const significand = exponent === 0 ? fraction : fraction + (1n << BigInt(width));
  return {
    negative,
    count: significand * countOfPower(Math.max(exponent, 1) - bias - width),
  };
}

/** The exactly rounded value, by integer division of counts. */
export function roundExactly(
  format: NumberFormat,
  value: number,
  { rounding = 'nearest-even', overflow = 'overflow', flushSubnormals = false }: RoundingOptions,
): number {
  if (Number.isNaN(value)) return format.specials === 'finite' ? format.maxFinite : NaN;
  const negative = value < 0 || Object.is(value, -0);
  const signed = (x: number): number => (negative ? -x : x);
  const noInfinity = format.specials === 'fn';
  const isFinite = format.specials === 'finite';
  if (!Number.isFinite(value)) {
    if (overflow === 'saturate' || isFinite) return signed(format.maxFinite);
    return noInfinity ? NaN : value;
  }
  const divide = (n: bigint, quantum: bigint): bigint => {
    const below = (n / quantum) * quantum;
    const rest = n - below;
    if (rest === 0n) return below;
    const above = below + quantum;
    if (rounding === 'toward-zero') return below;
    if (rounding === 'down') return negative ? above : below;
    if (rounding === 'up') return negative ? below : above;
    if (rest * 2n !== quantum) return rest * 2n < quantum ? below : above;
    return (below / quantum) % 2n === 0n ? below : above;
  };
  const n = count(value);
  if (n === 0n) return value;
  const floorLog2 = bitLength(n) - 1 - 1074;
  const unboundedQuantum = floorLog2 - format.precision + 1;
  const bounded = Math.max(unboundedQuantum, format.minExponent - format.precision + 1);
  if (flushSubnormals) {
    const unbounded = unboundedQuantum < -1074 ? n : divide(n, countOfPower(unboundedQuantum));
    if (unbounded < countOfPower(format.minExponent)) return signed(0);
  }
  const rounded = divide(n, countOfPower(bounded));
  if (rounded > count(format.maxFinite)) {
    const towardZero = rounding === 'toward-zero' || rounding === (negative ? 'up' : 'down');
    if (overflow === 'saturate' || isFinite || towardZero) return signed(format.maxFinite);
    return noInfinity ? NaN : signed(Infinity);
  }
  return signed(fromCount(rounded));
}

/** A deterministic source of 32-bit words (xorshift). */
export function wordSource(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}

/** A deterministic source of fp64 numbers with uniform bit patterns, exponent within the given bounds. */
export function doubleSource(seed: number, minExponent: number, maxExponent: number): () => number {
  const word = wordSource(seed);
  return () => {
    const span = maxExponent - minExponent + 1;
    const field = Math.max(minExponent + (word() % span) + 1023, 0);
    const high = (word() & 0x800fffff) | (field << 20);
    return fromPattern64((BigInt(high >>> 0) << 32n) | BigInt(word()));
  };
}

export const everyOption: RoundingOptions[] = (
  ['nearest-even', 'toward-zero', 'down', 'up'] as const
).flatMap((rounding) =>
  (['overflow', 'saturate'] as const).flatMap((overflow) =>
    [false, true].map((flushSubnormals) => ({ rounding, overflow, flushSubnormals })),
  ),
);
