import { scaledIntegerOf } from '../../src/arith/index.js';
import {
  bitLength,
  createExp2,
  ln2,
  log2e,
  naturalLogarithm,
  ratioToNumber,
  shiftBigInt,
} from '../fixed-point.js';
import { exactScores, scaledVector, type ScaledVector } from './scores.js';
import type { ScoreLaw } from '../../src/problem/index.js';
import type { Row, RowResult } from './row.js';

/** An upper bound on numerator / denominator · 2^exponent as fp64. */
function ratioUp(numerator: bigint, denominator: bigint, exponent: number): number {
  if (numerator === 0n) return 0;
  return ratioToNumber(numerator, denominator, exponent) * (1 + 2 ** -50) + Number.MIN_VALUE;
}

/** Units of 2^-bits by which an exponent y = score · log2 e from `exponents` can be off. */
const exponentError = 4n;

/** Units by which a weight can be off: exp2's own 4 (for a result below 2) and y's, times 2 ln 2. */
const weightError = (exponentError * 3n) / 2n + 4n;

/** y · 2^bits for each scaled score, within `exponentError` units. */
function exponents(
  { integers: scaled, exponent: scaledExponent }: ScaledVector,
  infinite: Int8Array,
  law: ScoreLaw,
  bits: number,
): bigint[] {
  const widest = scaled.reduce((most, x) => Math.max(most, bitLength(x)), 0);
  if (law.softcap === null) {
    const constantBits = bits + Math.max(0, widest + scaledExponent) + 8;
    const constant = log2e(constantBits);
    return scaled.map((x) => shiftBigInt(x * constant, scaledExponent - constantBits + bits));
  }
  // y = cap · log2 e · tanh(x / cap), the tanh from 2^-z with z = 2 log2(e) |x| / cap.
  const cap = scaledIntegerOf(law.softcap);
  const work = bits + 8 + Math.max(0, bitLength(cap.integer) + cap.exponent);
  const one = 1n << BigInt(work);
  const exp2 = createExp2(work);
  const shift = scaledExponent - cap.exponent + 1;
  const constantBits = work + 64 + Math.max(0, widest + shift);
  const constant = log2e(constantBits);
  const capLog2e = cap.integer * log2e(work + 64);
  return scaled.map((x, j) => {
    const negative = infinite[j] === 0 ? x < 0n : infinite[j] < 0;
    let power = 0n;
    if (infinite[j] === 0) {
      const numerator = shiftBigInt((x < 0n ? -x : x) * constant, shift - constantBits + work + 64);
      power = exp2(-((numerator / cap.integer) >> 64n));
    }
    const tanh = ((one - power) << BigInt(work)) / (one + power);
    const y = shiftBigInt(capLog2e * tanh, cap.exponent - 2 * work - 64 + bits);
    return negative ? -y : y;
  });
}

/**
 * One row in fixed-point arithmetic with `bits` fraction bits, from exact dot products. Radii are
 * proven: every floor in the computation is counted in units of 2^-bits (see the constants above),
 * and the final quotient is rounded to fp64 once.
 */
export function arbitraryLevel(row: Row, law: ScoreLaw, bits: number): RowResult {
  const { vDim, visible } = row;
  const y = exponents(exactScores(row, law), row.infinite, law, bits);
  const largest = y.reduce((a, b) => (b > a ? b : a));
  const reference = largest >> BigInt(bits);
  const exp2 = createExp2(bits);
  const weights = y.map((exponent) => exp2(exponent - (reference << BigInt(bits))));
  const total = weights.reduce((a, b) => a + b);
  const totalError = weightError * BigInt(weights.length);

  const out = new Float64Array(vDim);
  const outRadius = new Float64Array(vDim);
  const magnitude = new Float64Array(vDim);
  for (let c = 0; c < vDim; c++) {
    const column = scaledVector(Float64Array.from(visible, (j) => row.values[j * vDim + c]));
    let sum = 0n;
    let absoluteSum = 0n;
    let valueSum = 0n;
    column.integers.forEach((v, j) => {
      const absolute = v < 0n ? -v : v;
      sum += weights[j] * v;
      absoluteSum += weights[j] * absolute;
      valueSum += absolute;
    });
    const exact = sum < 0n ? -sum : sum;
    out[c] = ratioToNumber(sum, total, column.exponent);
    magnitude[c] = ratioToNumber(absoluteSum, total, column.exponent);
    // |N/l − N̂/l̂| ≤ (dN + |N̂/l̂| dl) / (l̂ − dl), then the rounding of the quotient to fp64.
    outRadius[c] =
      valueSum === 0n
        ? 0
        : ratioUp(
            weightError * valueSum * total + exact * totalError,
            total * (total - totalError),
            column.exponent,
          ) +
          2 ** -53 * Math.abs(out[c]) +
          Number.MIN_VALUE;
  }
  const work = bits + 64 + bitLength(reference);
  const naturalUnits =
    ((reference * ln2(work)) >> BigInt(work - bits)) + naturalLogarithm(total, bits);
  const lse = ratioToNumber(naturalUnits, 1n << BigInt(bits), 0);
  const lseUnits = 4n + 2n * totalError;
  return {
    out,
    outRadius,
    magnitude,
    lse,
    // An LSE beyond fp64 is an infinity, which has no radius.
    lseRadius: Number.isFinite(lse)
      ? ratioUp(lseUnits, 1n << BigInt(bits), 0) + 2 ** -53 * Math.abs(lse)
      : 0,
    // Halved, since a score that fp64 holds can be beyond its range in octaves.
    maximum: ratioToNumber(largest, 1n << BigInt(bits), -1) * (2 * Math.LN2),
  };
}
