import { doubleDoubleFromRational, scaledIntegerOf, sumError } from '../../src/arith/index.js';
import { lazily } from '../../src/reuse.js';
import type { ScoreLaw } from '../../src/problem/index.js';
import { log2e } from '../fixed-point.js';
import { operandRow, type Operand } from './operand.js';
import type { Row } from './row.js';

/** Factors of scores in the fp64 and double-double levels, each as a double-double. */
export interface ScoreConstants {
  /** Exponent y = score · factor (without softcap), or tanh · factor (with it). */
  readonly factorHigh: number;
  readonly factorLow: number;
  readonly softcapped: boolean;
  /** capFactor, with a softcap: tanh(x / cap) = (2^w − 1)/(2^w + 1) for w = score · capFactor; else 0. */
  readonly capFactorHigh: number;
  readonly capFactorLow: number;
}

const bits = 160;
const factorLog2e = lazily(() => log2e(bits));

/** The constants of a score law; relative error of each below 2^-104. */
export function scoreConstants(law: ScoreLaw): ScoreConstants {
  const logarithm = factorLog2e();
  const ratio = (numerator: bigint, denominator: bigint, exponent: number) =>
    exponent >= 0
      ? doubleDoubleFromRational(numerator << BigInt(exponent), denominator)
      : doubleDoubleFromRational(numerator, denominator << BigInt(-exponent));
  const scale = scaledIntegerOf(law.scale);
  const cap = law.softcap === null ? null : scaledIntegerOf(law.softcap);
  const multiplier = cap ?? scale;
  const factor = ratio(multiplier.integer * logarithm, 1n, multiplier.exponent - bits);
  const capFactor =
    cap === null
      ? { high: 0, low: 0 }
      : ratio(2n * scale.integer * logarithm, cap.integer, scale.exponent - cap.exponent - bits);
  return {
    softcapped: cap !== null,
    factorHigh: factor.high,
    factorLow: factor.low,
    capFactorHigh: capFactor.high,
    capFactorLow: capFactor.low,
  };
}

/** Integers with one exponent for all: element i is integers[i] · 2^exponent, exactly. */
export interface ScaledVector {
  readonly integers: readonly bigint[];
  readonly exponent: number;
}

/** Finite fp64 values as integers, exactly. */
export function scaledVector(values: Float64Array): ScaledVector {
  const words = new Uint32Array(values.slice().buffer);
  const exponents = values.map((value, t) =>
    value === 0 ? 1024 : Math.max((words[2 * t + 1] >>> 20) & 0x7ff, 1) - 1075,
  );
  const exponent = exponents.reduce((least, e) => Math.min(least, e), 1024);
  const integers = Array.from(values, (value, t) => {
    if (value === 0) return 0n;
    const high = words[2 * t + 1];
    const field = (high >>> 20) & 0x7ff;
    const significand = ((high & 0xfffff) + (field === 0 ? 0 : 2 ** 20)) * 2 ** 32 + words[2 * t];
    const integer = BigInt(value < 0 ? -significand : significand);
    return integer << BigInt(exponents[t] - exponent);
  });
  return { integers, exponent };
}

/** Two vectors added element by element, exactly. */
function sumOf(a: ScaledVector, b: ScaledVector): ScaledVector {
  const exponent = Math.min(a.exponent, b.exponent);
  const lifted = ({ integers, exponent: own }: ScaledVector) =>
    integers.map((x) => x << BigInt(own - exponent));
  const ofB = lifted(b);
  return { integers: lifted(a).map((x, j) => x + ofB[j]), exponent };
}

/** Whether a number is one of fp32: products of two such are exact in fp64. */
function isShort(x: number): boolean {
  return Math.fround(x) === x;
}

/** The dot product of a vector of fp32 numbers with another one; null where a product or a sum is not exact in fp64. */
function plainDot(vector: Float64Array, other: Float64Array): number | null {
  let sum = 0;
  for (let t = 0; t < vector.length; t++) {
    if (!isShort(other[t])) return null;
    const product = vector[t] * other[t];
    const next = sum + product;
    if (sumError(sum, product, next) !== 0) return null;
    sum = next;
  }
  return sum;
}

/** The dot products of a vector with some rows of an operand, exactly. */
export function exactDots(vector: Float64Array, operand: Operand, rows: Int32Array): ScaledVector {
  const factor = lazily(() => scaledVector(vector));
  const isPlain = vector.every(isShort);
  const exponents = new Float64Array(rows.length);
  const dots = Array.from(rows, (row, j) => {
    const values = operandRow(operand, row);
    const plain = isPlain ? plainDot(vector, values) : null;
    if (plain !== null) {
      const { integer, exponent } = scaledIntegerOf(plain);
      exponents[j] = plain === 0 ? 0 : exponent;
      return integer;
    }
    const other = scaledVector(values);
    exponents[j] = other.exponent + factor().exponent;
    let dot = 0n;
    for (let t = 0; t < vector.length; t++) dot += other.integers[t] * factor().integers[t];
    return dot;
  });
  const exponent = exponents.reduce((least, e) => Math.min(least, e), 1024);
  return {
    integers: dots.map((dot, j) => dot << BigInt(exponents[j] - exponent)),
    exponent,
  };
}

/**
 * scale · q·k of each key that a row sees, exactly, and without a softcap its addend; a key marked infinite
 * counts as its finite part.
 */
export function exactScores(row: Row, law: ScoreLaw): ScaledVector {
  const scale = scaledIntegerOf(law.scale);
  const dots = exactDots(row.query, row.keys, row.visible);
  const scores = {
    integers: dots.integers.map((dot) => dot * scale.integer),
    exponent: dots.exponent + scale.exponent,
  };
  const added = law.softcap === null ? exactAddends(row) : null;
  return added === null ? scores : sumOf(scores, added);
}

/** The addend of each key that a row sees, exactly; null for none. */
export function exactAddends({ addends, addendRests }: Row): ScaledVector | null {
  if (addends === null) return null;
  const rounded = scaledVector(addends);
  return addendRests === null ? rounded : sumOf(rounded, scaledVector(addendRests));
}
