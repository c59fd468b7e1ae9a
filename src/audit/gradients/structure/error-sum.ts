import type { OutputRoundings } from './output-roundings.js';

/** Errors of the elements of a gradient, by their parts. */
export interface SummedErrors {
  /** The part that does not average out, and the root mean square of the rest. */
  readonly systematic: Float64Array;
  readonly deviation: Float64Array;
  /** The part of the deviation that elements of a row do not share; null where they may share all of it. */
  readonly apart: Float64Array | null;
  /** The sum of the roundings of operands that follow from the problem, signed. */
  readonly operands: Float64Array;
  readonly roundings: OutputRoundings;
}

/** Number of shares of the largest error, to each side, by which jumps of roundings are told apart. */
const places = 32;

/** Standard deviations within which errors that follow from the problem look like those of independent roundings. */
const byChanceDeviations = 4;

/** Squares of deviations: of all that is not systematic, and of that without the parts that are known or may be. */
interface Deviations {
  all: number;
  unknown: number;
}

function noDeviations(): Deviations {
  return { all: 0, unknown: 0 };
}

/** Forgets deviations. */
function clear(deviations: Deviations): void {
  deviations.all = 0;
  deviations.unknown = 0;
}

/**
 * Errors of rows projected on a pattern, summed up: rows err independently, except that those of one unit err together, and
 * elements of a row err together except for the part that they do not share; errors that follow from the problem count
 * beside: Theorem 24 of docs/theory/bounds-backward.md.
 */
export class ErrorSum {
  /** Σ of the projected errors; and of the expected roundings of outputs. */
  signed = 0;
  expected = 0;
  /** Σ of the pattern times the values that its scale refers to. */
  norm = 0;
  readonly #of: SummedErrors;
  /** Sums of a row: of deviations as if all of it erred together, of those that do, and of the squares of the rest. */
  readonly #row = { whole: noDeviations(), common: noDeviations(), squares: noDeviations() };
  #systematic = 0;
  #operands = 0;
  #blurred = 0;
  /** Σ of the roundings of operands and outputs together, by each factor that operands may have when they are rounded. */
  readonly #following: Float64Array;
  readonly #squares = noDeviations();
  readonly #shared = new Map<number, Deviations>();
  /** Σ jump·pattern by the share of their errors at which they jump. */
  readonly #jumps = new Float64Array(2 * places);
  #jumpSquares = 0;

  constructor(of: SummedErrors) {
    this.#of = of;
    this.#following = new Float64Array(of.roundings.following.length);
  }

  /**
   * Adds an element of the row that `endRow` ends.
   * @param projected its error, or its value, times the pattern
   * @param value the value that a slope refers to
   */
  add(at: number, projected: number, pattern: number, value = pattern): void {
    const { systematic, operands, roundings } = this.#of;
    const size = Math.abs(pattern);
    this.signed += projected;
    this.expected += roundings.expected[at] * pattern;
    this.norm += pattern * value;
    this.#systematic += systematic[at] * size;
    this.#operands += operands[at] * pattern;
    this.#blurred += roundings.blurred[at] * pattern;
    for (let k = 0; k < this.#following.length; k++)
      this.#following[k] += roundings.following[k][at] * pattern;
    this.#addDeviations(at, size);
    if (roundings.jump[at] === 0) return;
    const place = Math.min(Math.floor((1 + roundings.turn[at]) * places), 2 * places - 1);
    const jump = roundings.jump[at] * pattern;
    this.#jumps[place] += jump;
    this.#jumpSquares += jump * jump;
  }

  /** Adds the deviations of an element to those of its row. */
  #addDeviations(at: number, size: number): void {
    const { deviation, apart, roundings } = this.#of;
    const [all, unknown] = [deviation[at], roundings.unknown[at]];
    const { whole, common, squares } = this.#row;
    whole.all += all * size;
    whole.unknown += unknown * size;
    if (apart === null) return;
    const ofRow = Math.sqrt(Math.max(0, all * all - apart[at] * apart[at]));
    const known = Math.min(ofRow, unknown);
    common.all += ofRow * size;
    common.unknown += known * size;
    squares.all += (apart[at] * size) ** 2;
    squares.unknown += Math.max(0, unknown * unknown - known * known) * size * size;
  }

  /** @param unit of rows that may err alike; null for a row that shares its errors with no other */
  endRow(unit: number | null): void {
    const { whole, common, squares } = this.#row;
    const together = this.#of.apart === null ? whole : common;
    if (unit === null) {
      this.#squares.all += together.all ** 2 + squares.all;
      this.#squares.unknown += together.unknown ** 2 + squares.unknown;
    } else {
      const shared = this.#shared.get(unit) ?? noDeviations();
      shared.all += whole.all;
      shared.unknown += whole.unknown;
      this.#shared.set(unit, shared);
    }
    clear(whole);
    clear(common);
    clear(squares);
  }

  /** The largest sum of jumps of one sign, where all rows have the same share of their errors. */
  #largestJump(sign: number): number {
    let largest = 0;
    for (const step of [1, -1]) {
      let sum = 0;
      for (let at = step > 0 ? places : places - 1; at >= 0 && at < 2 * places; at += step) {
        sum += this.#jumps[at];
        largest = Math.max(largest, sign * sum);
      }
    }
    return largest;
  }

  /** Squares of deviations, including those of units that err together. */
  #deviations(common: number): Deviations {
    let all = this.#squares.all + common * common;
    let unknown = this.#squares.unknown + common * common;
    for (const shared of this.#shared.values()) {
      all += shared.all * shared.all;
      unknown += shared.unknown * shared.unknown;
    }
    return { all, unknown };
  }

  /**
   * An upper bound of the sum where all roundings are independent, for that many standard deviations.
   * @param common a deviation that all rows share
   */
  ofIndependent(deviations: number, common: number): number {
    return this.#systematic + deviations * Math.sqrt(this.#deviations(common).all);
  }

  /**
   * An upper bound, on one side, of the sum without the expected roundings, where roundings follow from the values.
   * @param sign the sign of the side
   */
  ofFollowing(deviations: number, common: number, sign: number): number {
    const { all, unknown } = this.#deviations(common);
    const apart = Math.max(0, sign * this.#operands) + Math.max(0, sign * this.#blurred);
    const following = this.#following.reduce((most, sum) => Math.max(most, sign * sum), apart);
    const jumps = this.#largestJump(sign);
    const byChance = byChanceDeviations * Math.sqrt(all - unknown + this.#jumpSquares);
    return following + jumps <= byChance
      ? this.ofIndependent(deviations, common)
      : this.#systematic + jumps + largestOf(following, deviations, all, unknown);
  }

  /** The sum with its threshold: as of independent roundings, or, where it is beyond, as of those that follow from the values. */
  judge(
    deviations: number,
    common: number,
  ): { readonly statistic: number; readonly threshold: number } {
    const independent = this.ofIndependent(deviations, common);
    if (!(Math.abs(this.signed) > independent))
      return { statistic: this.signed, threshold: independent };
    const statistic = this.signed - this.expected;
    const sign = statistic < 0 ? -1 : 1;
    return { statistic, threshold: this.ofFollowing(deviations, common, sign) };
  }
}

/**
 * The largest of a·expected + deviations·√(all − a²(all − unknown)) for a from 0 to 1: a part of the expected rounding is
 * blurred.
 */
function largestOf(expected: number, deviations: number, all: number, unknown: number): number {
  const rounded = all - unknown;
  const part = (expected ** 2 * all) / (rounded * (deviations ** 2 * rounded + expected ** 2));
  return part <= 1
    ? Math.sqrt(all * (deviations ** 2 + expected ** 2 / rounded))
    : Math.max(expected + deviations * Math.sqrt(unknown), deviations * Math.sqrt(all));
}
