import { doubleDoubleFromRational, scaledIntegerOf } from '../../src/arith/index.js';
import { lazily } from '../../src/lazily.js';
import { log2e } from '../fixed-point.js';
import type { ScoreLaw } from './row.js';

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
