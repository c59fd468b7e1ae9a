import { formats, round } from '../../../formats/index.js';
import { outputRounding } from '../../bounds/index.js';
import type { ComparedValues } from '../../kernel-outputs.js';
import type { GradientBound } from '../bounds/index.js';

/**
 * Roundings of a gradient to its format, by exact values, and their changes by errors before them: Theorem 24 of
 * docs/theory/bounds-backward.md.
 */
export interface OutputRoundings {
  /** The rounding of the exact value, signed, where errors take it past no more than one midpoint of its format; else 0. */
  readonly expected: Float64Array;
  /** The change of that rounding, signed, where errors take the value past the next midpoint; 0 where they do not. */
  readonly jump: Float64Array;
  /** The place of that change, as a signed share of the largest error: between −1 and 1. */
  readonly turn: Float64Array;
  /** The rounding of the exact value where errors may blur it, but need not; else 0. */
  readonly blurred: Float64Array;
  /**
   * The operands' roundings together with the change that they make in the rounding of the exact value, where errors may blur that: by
   * each factor that operands may have when they are rounded.
   */
  readonly following: readonly Float64Array[];
  /** The deviation without the parts that are known or may be: the rounding of the output, and those of operands. */
  readonly unknown: Float64Array;
}

type RoundedBound = Pick<GradientBound, 'deviation' | 'known' | 'reach' | 'operands' | 'byOthers'>;

function emptyRoundings(length: number, factors: number): OutputRoundings {
  const numbers = () => new Float64Array(length);
  return {
    expected: numbers(),
    jump: numbers(),
    turn: numbers(),
    blurred: numbers(),
    following: Array.from({ length: factors }, numbers),
    unknown: numbers(),
  };
}

/** Roundings of values for which none is expected. */
export function noRoundings(deviation: Float64Array): OutputRoundings {
  return { ...emptyRoundings(deviation.length, 0), unknown: deviation };
}

/** The roundings of a gradient in exact arithmetic, and their changes by errors. */
export function outputRoundings(
  { exact: { values }, format }: ComparedValues,
  { deviation, known, reach, operands, byOthers }: RoundedBound,
): OutputRoundings {
  const factors = [operands, ...byOthers];
  const roundings = emptyRoundings(values.length, factors.length);
  const { expected, jump, turn, blurred, following, unknown } = roundings;
  const table = formats[format];
  const roundingOf = (x: number) => {
    const rounding = round(table, x) - x;
    return Number.isFinite(rounding) ? rounding : 0;
  };
  following.forEach((to, k) => to.set(factors[k]));
  for (let i = 0; i < values.length; i++) {
    const x = values[i];
    const others = deviation[i] ** 2 - operands[i] ** 2;
    const rounding = roundingOf(x);
    const size = Math.abs(rounding);
    if (known[i] > 0) {
      expected[i] = rounding;
      unknown[i] = Math.sqrt(Math.max(0, others - known[i] ** 2));
      continue;
    }
    const half = size === 0 ? 0 : outputRounding(format, x, 0);
    if (reach[i] === 0) {
      blurred[i] = rounding;
      for (let k = 0; k < factors.length; k++) {
        const moved = factors[k][i];
        following[k][i] += moved === 0 ? rounding : roundingOf(x + moved);
      }
      unknown[i] = Math.sqrt(Math.max(0, others - Math.min(half / Math.sqrt(3), size) ** 2));
      continue;
    }
    expected[i] = rounding;
    unknown[i] = Math.sqrt(Math.max(0, others));
    // Rounded up, it stands above a midpoint; rounded down, below one.
    const toMidpoint = Math.sign(rounding) * (size - half);
    if (!(Math.abs(toMidpoint) < reach[i])) continue;
    turn[i] = toMidpoint / reach[i];
    jump[i] = -2 * half * Math.sign(rounding);
  }
  return roundings;
}
