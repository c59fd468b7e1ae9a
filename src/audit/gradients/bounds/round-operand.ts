import { mostOtherUnits } from './pair-sums.js';
import { halfUlp, roundedNear, type OperandRounding, type ShortFormat } from './pair-arithmetic.js';

/** Roundings of numbers to the format of an operand, place by place. */
export interface Roundings {
  /** The numbers, and how far they may be off before. */
  readonly numbers: Float64Array;
  readonly errors: Float64Array;
  /**
   * The largest error; the rounding itself where it is certain, or is so for one of several factors among subnormals, else 0; its
   * variance where it is not certain.
   */
  readonly worst: Float64Array;
  readonly known: Float64Array;
  readonly variance: Float64Array;
  /** The value of `known` by each of the other factors. */
  readonly byOthers: readonly Float64Array[];
}

/** Room for `length` roundings. */
export function emptyRoundings(length: number): Roundings {
  const numbers = () => new Float64Array(length);
  return {
    numbers: numbers(),
    errors: numbers(),
    worst: numbers(),
    known: numbers(),
    variance: numbers(),
    byOthers: Array.from({ length: mostOtherUnits }, numbers),
  };
}

/**
 * The roundings at places [begin, end) of numbers that are within their errors of x: Theorem 5 of docs/theory/bounds.md. Where a factor
 * may multiply them before, their significands are not known, and the worst of its units counts.
 */
export function roundOperands(
  { format, units, largestUnit, smallestUnit, otherUnits, times }: OperandRounding,
  { numbers, errors, worst, known, variance, byOthers }: Roundings,
  begin: number,
  end: number,
): void {
  for (const of of byOthers) of.fill(0, begin, end);
  if (format === null) {
    for (const of of [worst, known, variance]) of.fill(0, begin, end);
    return;
  }
  const isOpen = units.length > 0 || times > 1;
  for (let at = begin; at < end; at++) {
    const x = numbers[at];
    const error = errors[at];
    const most = (Math.abs(x) + error) * (1 + 2 ** -20);
    known[at] = 0;
    variance[at] = 0;
    if (!(most * largestUnit < format.maxFinite)) {
      worst[at] = Infinity;
      continue;
    }
    const half = halfUlp(format, most);
    // It becomes zero, whatever factor it has by then.
    if (most * largestUnit < format.least) {
      worst[at] = most;
      known[at] = -x;
      otherUnits.forEach((_, i) => (byOthers[i][at] = -x));
      continue;
    }
    if (isOpen) {
      let largest = half;
      for (let i = 0; i < units.length; i++)
        largest = Math.max(largest, halfUlp(format, most * units[i]) / units[i]);
      // A number that is rounded again may be in the next binade by then.
      worst[at] = times === 1 ? largest : 2 * times * largest * (1 + 2 ** -6);
      variance[at] = (times * largest * largest) / 3;
      // By the factor that leaves least of them, and by each of the others.
      known[at] = ofSubnormal(format, x, smallestUnit);
      for (let i = 0; i < otherUnits.length; i++)
        byOthers[i][at] = ofSubnormal(format, x, otherUnits[i]);
      continue;
    }
    const rounding = roundedNear(format, x) - x;
    const distance = Math.abs(rounding);
    worst[at] = Math.min(half, distance + error);
    if (distance + error < half) known[at] = rounding;
    // A rounding that is open though the error is less than half an ulp is next to a tie: off by its distance,
    // up or down.
    else variance[at] = error < half ? distance * distance : (half * half) / 3;
  }
}

/** The rounding of x times a factor: among the smallest numbers of a format it depends on little but the values; else 0. */
function ofSubnormal(format: ShortFormat, x: number, factor: number): number {
  const scaled = x * factor;
  return Math.abs(scaled) * format.unit <= format.least
    ? roundedNear(format, scaled) / factor - x
    : 0;
}
