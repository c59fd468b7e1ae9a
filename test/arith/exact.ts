import type { RoundingMode } from '../../src/formats/index.js';

/** An exact number, integer · 2^exponent: the reference that the arithmetic is judged by. */
export interface Exact {
  readonly integer: bigint;
  readonly exponent: number;
}

const view = new DataView(new ArrayBuffer(8));

export function bits32(value: number): number {
  if (Number.isNaN(value)) return 0x7fffffff;
  view.setFloat32(0, value);
  return view.getUint32(0);
}

export function float32(bits: number): number {
  view.setUint32(0, bits);
  return view.getFloat32(0);
}

export function bits64(value: number): bigint {
  view.setFloat64(0, value);
  return view.getBigUint64(0);
}

export function float64(bits: bigint): number {
  view.setBigUint64(0, bits);
  return view.getFloat64(0);
}

/** Decoded from the fp64 bit fields; value must be finite. */
export function exact(value: number): Exact {
  const bits = bits64(value);
  const field = Number((bits >> 52n) & 2047n);
  if (field === 2047) throw new Error(`not finite: ${value}`);
  const fraction = bits & (2n ** 52n - 1n);
  const integer = field === 0 ? fraction : fraction + 2n ** 52n;
  return { integer: bits >> 63n ? -integer : integer, exponent: (field || 1) - 1075 };
}

export function sum(a: Exact, b: Exact): Exact {
  const exponent = Math.min(a.exponent, b.exponent);
  const integer =
    (a.integer << BigInt(a.exponent - exponent)) + (b.integer << BigInt(b.exponent - exponent));
  return { integer, exponent };
}

export function product(a: Exact, b: Exact): Exact {
  return { integer: a.integer * b.integer, exponent: a.exponent + b.exponent };
}

export function negative(a: Exact): Exact {
  return { integer: -a.integer, exponent: a.exponent };
}

export function absolute(a: Exact): Exact {
  return a.integer < 0n ? negative(a) : a;
}

export function difference(a: Exact, b: Exact): Exact {
  return sum(a, negative(b));
}

/** The sign of a − b: negative, zero or positive. */
export function order(a: Exact, b: Exact): number {
  const { integer } = difference(a, b);
  return integer < 0n ? -1 : integer > 0n ? 1 : 0;
}

/**
 * The exact non-zero value rounded by integer arithmetic to so many bits (default 24), of which none lies below
 * 2^lowestExponent.
 */
function roundToBits(
  value: Exact,
  lowestExponent: number,
  rounding: RoundingMode,
  bits = 24,
): Exact {
  const isNegative = value.integer < 0n;
  const magnitude = isNegative ? -value.integer : value.integer;
  const length = magnitude.toString(2).length;
  const exponent = Math.max(value.exponent + length - bits, lowestExponent);
  const shift = exponent - value.exponent;
  if (shift <= 0) return { integer: value.integer << BigInt(-shift), exponent };
  const kept = magnitude >> BigInt(shift);
  const rest = magnitude - (kept << BigInt(shift));
  const half = 1n << BigInt(shift - 1);
  let goesAway = false;
  if (rounding === 'nearest-even') goesAway = rest > half || (rest === half && kept % 2n === 1n);
  if (rounding === 'down') goesAway = isNegative && rest > 0n;
  if (rounding === 'up') goesAway = !isNegative && rest > 0n;
  const rounded = goesAway ? kept + 1n : kept;
  return { integer: isNegative ? -rounded : rounded, exponent };
}

/** The exact non-zero value rounded once to fp32, flushed after rounding to 24 bits when asked. */
function roundToFloat32(value: Exact, rounding: RoundingMode, flushToZero: boolean): number {
  const isNegative = value.integer < 0n;
  const minNormal: Exact = { integer: 1n, exponent: -126 };
  if (flushToZero) {
    const unbounded = roundToBits(value, -Infinity, rounding);
    if (order(absolute(unbounded), minNormal) < 0) return isNegative ? -0 : 0;
  }
  const rounded = roundToBits(value, -149, rounding);
  if (order(absolute(rounded), { integer: 1n, exponent: 128 }) >= 0) {
    const largest = Number(2n ** 128n - 2n ** 104n);
    const reached = {
      'nearest-even': Infinity,
      'toward-zero': largest,
      down: isNegative ? Infinity : largest,
      up: isNegative ? largest : Infinity,
    }[rounding];
    return isNegative ? -reached : reached;
  }
  const magnitude = Number(absolute(rounded).integer) * 2 ** rounded.exponent;
  return isNegative ? -magnitude : magnitude;
}

/** The exact non-zero value rounded once to fp64. */
export function roundToFloat64(value: Exact, rounding: RoundingMode): number {
  const isNegative = value.integer < 0n;
  const rounded = absolute(roundToBits(value, -1074, rounding, 53));
  if (order(rounded, { integer: 1n, exponent: 1024 }) >= 0) {
    const staysFinite =
      rounding === 'toward-zero' ||
      (rounding !== 'nearest-even' && (rounding === 'up') === isNegative);
    return (isNegative ? -1 : 1) * (staysFinite ? Number.MAX_VALUE : Infinity);
  }
  // Two factors: 2^−1074 times 2^53 would lose bits where the power alone is subnormal.
  const half = Math.floor(rounded.exponent / 2);
  const magnitude = Number(rounded.integer) * 2 ** half * 2 ** (rounded.exponent - half);
  return isNegative ? -magnitude : magnitude;
}

function isNegativeSign(value: number): boolean {
  return bits64(value) >> 63n === 1n;
}

function flush(value: number): number {
  return Math.abs(value) < 2 ** -126 ? (isNegativeSign(value) ? -0 : 0) : value;
}

/** a·b + c, one rounding; without a and b the sum of addend and c, without c the product. */
export type Operation = 'add' | 'multiply' | 'fma';

/** The correctly rounded fp32 result of an operation (c is used by fma alone). */
export function reference(
  operation: Operation,
  operands: readonly [number, number, number],
  rounding: RoundingMode,
  flushToZero: boolean,
): number {
  const [a, b, c] = flushToZero ? operands.map(flush) : operands;
  const isProduct = operation !== 'add';
  const isSum = operation !== 'multiply';
  const addend = operation === 'add' ? b : c;
  if ([a, isProduct ? b : 0, isSum ? addend : 0].some(Number.isNaN)) return NaN;

  const firstIsNegative = isNegativeSign(a) !== (isProduct && isNegativeSign(b));
  const firstIsInfinite = Math.abs(a) === Infinity || (isProduct && Math.abs(b) === Infinity);
  if (isProduct && firstIsInfinite && (a === 0 || b === 0)) return NaN;
  const addendIsInfinite = isSum && Math.abs(addend) === Infinity;
  if (firstIsInfinite && addendIsInfinite && firstIsNegative !== isNegativeSign(addend)) return NaN;
  if (firstIsInfinite) return firstIsNegative ? -Infinity : Infinity;
  if (addendIsInfinite) return addend;

  const first = isProduct ? product(exact(a), exact(b)) : exact(a);
  const result = isSum ? sum(first, exact(addend)) : first;
  if (result.integer !== 0n) return roundToFloat32(result, rounding, flushToZero);
  const agree = !isSum || firstIsNegative === isNegativeSign(addend);
  const bothZero = first.integer === 0n;
  if (bothZero && agree) return firstIsNegative ? -0 : 0;
  return rounding === 'down' ? -0 : 0;
}
