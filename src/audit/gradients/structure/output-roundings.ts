import { formats, round } from '../../../formats/index.js';
import { outputRounding } from '../../bounds/index.js';
import type { ComparedValues } from '../../kernel-outputs.js';
import type { GradientBound } from '../bounds/index.js';

/**
 * What rounding a gradient to its format does to exact values, and what errors before it may make of that: Theorem 24 of
 * docs/bounds-backward.md.
 */
export interface OutputRoundings {
  /** What the exact value is rounded by, signed, where errors take it past no more than one midpoint of its format; else 0. */
  readonly expected: Float64Array;
  /** What that changes by, signed, where errors take the value past the next midpoint; 0 where they do not. */
  readonly jump: Float64Array;
  /** Where that is, as a signed share of what errors may come to: between −1 and 1. */
  readonly turn: Float64Array;
  /** What the exact value is rounded by where errors may blur that, as they need not; else 0. */
  readonly blurred: Float64Array;
  /**
   * What the operands' roundings come to with that of what they make of the exact value, where errors may blur that: by each factor that
   * operands may have when they are rounded.
   */
  readonly following: readonly Float64Array[];
  /** The deviation without all that is known or may be: the rounding of the output, and those of operands. */
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

/** Of values of which no rounding is expected. */
export function noRoundings(deviation: Float64Array): OutputRoundings {
  return { ...emptyRoundings(deviation.length, 0), unknown: deviation };
}

/** The roundings of a gradient as exact arithmetic makes them, and what errors make of these. */
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
  values.forEach((x, i) => {
    const others = deviation[i] ** 2 - operands[i] ** 2;
    const rounding = roundingOf(x);
    factors.forEach((of, k) => (following[k][i] = of[i]));
    const size = Math.abs(rounding);
    if (known[i] > 0) {
      expected[i] = rounding;
      unknown[i] = Math.sqrt(Math.max(0, others - known[i] ** 2));
      return;
    }
    const half = size === 0 ? 0 : outputRounding(format, x, 0);
    if (reach[i] === 0) {
      blurred[i] = rounding;
      factors.forEach((of, k) => (following[k][i] += roundingOf(x + of[i])));
      unknown[i] = Math.sqrt(Math.max(0, others - Math.min(half / Math.sqrt(3), size) ** 2));
      return;
    }
    expected[i] = rounding;
    unknown[i] = Math.sqrt(Math.max(0, others));
    // Rounded up, it stands above a midpoint; rounded down, below one.
    const toMidpoint = Math.sign(rounding) * (size - half);
    if (!(Math.abs(toMidpoint) < reach[i])) return;
    turn[i] = toMidpoint / reach[i];
    jump[i] = -2 * half * Math.sign(rounding);
  });
  return roundings;
}
