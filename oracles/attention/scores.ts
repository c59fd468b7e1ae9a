import { doubleDoubleFromRational, scaledIntegerOf } from '../../src/arith/index.js';
import { lazily } from '../../src/lazily.js';
import type { ScoreLaw } from '../../src/problem/index.js';
import { log2e } from '../fixed-point.js';
import type { Row } from './row.js';

/** What the fp64 and double-double levels multiply scores by, each as a double-double. */
export interface ScoreConstants {
  /** Exponent y = score · factor (without softcap), or tanh · factor (with it). */
  readonly factorHigh: number;
  readonly factorLow: number;
  readonly softcapped: boolean;
  /** With softcap: tanh(x / cap) = (2^w − 1)/(2^w + 1) for w = score · capFactor; else 0. */
  readonly capFactorHigh: number;
  readonly capFactorLow: number;
}

const bits = 160;
const factorLog2e = lazily(() => log2e(bits));

/**
 * The constants of a score law; relative error of each below 2^-104.
 * @throws Error for a law with an addend, which no level of the oracle adds yet
 */
export function scoreConstants(law: ScoreLaw): ScoreConstants {
  if (law.addend !== null)
    throw new Error('the attention oracle cannot yet add to scores, as the score law asks');
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

/** scale · q·k of each key that a row sees, exactly; a key marked infinite counts as its finite part. */
export function exactScores(row: Row, law: ScoreLaw): ScaledVector {
  const { qkDim, visible } = row;
  const query = scaledVector(row.query);
  const scale = scaledIntegerOf(law.scale);
  const keys = Array.from(visible, (j) =>
    scaledVector(row.keys.subarray(j * qkDim, (j + 1) * qkDim)),
  );
  const exponent = keys.reduce((least, key) => Math.min(least, key.exponent), 1024);
  const integers = keys.map((key) => {
    let dot = 0n;
    for (let t = 0; t < qkDim; t++) dot += key.integers[t] * query.integers[t];
    return (dot << BigInt(key.exponent - exponent)) * scale.integer;
  });
  return { integers, exponent: exponent + query.exponent + scale.exponent };
}
