import { float64 } from './exact.js';
import { mix } from './float32-patterns.js';

const largestField = 2046;

/** A stream of 32-bit words that is a function of the seed alone. */
export function words(seed: number): () => number {
  let index = 0;
  return () => mix(seed + Math.imul(++index, 0x9e3779b9));
}

/** A 52-bit fraction: any bits, or its low end cleared or filled, or few bits set or cleared. */
function fraction(next: () => number): bigint {
  const bits = (BigInt(next() & 0xfffff) << 32n) | BigInt(next());
  const low = (1n << BigInt(next() % 53)) - 1n;
  const all = (1n << 52n) - 1n;
  switch (next() & 7) {
    case 0:
      return bits & ~low;
    case 1:
      return bits | low;
    case 2:
      return all & ~low;
    case 3:
      return low;
    case 4:
      return (low + 1n) & all;
    case 5:
      return (bits >> 26n) << 26n;
    default:
      return bits;
  }
}

/**
 * A finite fp64 value of either sign with its biased exponent field between two bounds (0 for
 * subnormals and zeros, 2046 the largest) and a fraction of any shape.
 */
export function float64Within(next: () => number, lowest: number, highest: number): number {
  const field = BigInt(lowest + (next() % (highest - lowest + 1)));
  return float64((BigInt(next() & 1) << 63n) | (field << 52n) | fraction(next));
}

/** A finite fp64 value anywhere in the format. */
export function anyFloat64(next: () => number): number {
  return float64Within(next, 0, largestField);
}

/**
 * Two finite fp64 values: half the time anywhere, half the time with exponents at most 60 apart, now
 * and then equal but for the sign and the last bits.
 */
export function float64Pair(next: () => number): [number, number] {
  const a = anyFloat64(next);
  const kind = next() & 3;
  if (kind === 0) return [a, anyFloat64(next)];
  const field = Math.floor(Math.log2(Math.abs(a) || Number.MIN_VALUE)) + 1023;
  const lowest = Math.min(Math.max(field - 60, 0), largestField);
  const highest = Math.min(Math.max(field + 60, 0), largestField);
  if (kind === 1) return [a, -a * (1 + ((next() & 7) - 3) * Number.EPSILON)];
  return [a, float64Within(next, lowest, highest)];
}
