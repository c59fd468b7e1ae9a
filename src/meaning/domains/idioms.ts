import { addFloat64ToDoubleDouble, doubleDouble, type DoubleDouble } from '../../arith/index.js';
import { evaluateReal } from '../rules/index.js';
import type { Trace } from '../trace/index.js';
import { polynomialOf } from './polynomials.js';

/** A place of the program that computes a function in a way of its own. */
export interface Idiom {
  /** 2^x by a polynomial in x − n, times 2^n, n a rounded x. */
  readonly function: 'exp2';
  readonly site: string;
  readonly degree: number;
  /** The largest relative distance of the polynomial from 2^f over the range of f, on a grid. */
  readonly distance: number;
  /** Values that were made so. */
  readonly count: number;
}

/** A polynomial stands for 2^f up to this distance: the unit roundoff of bf16. A line through the ends is 6 % off. */
const largestDistance = 2 ** -8;

/** Ranges of what rounding leaves of a number: downwards, and to the nearest integer. */
const ranges = [
  [0, 1],
  [-0.5, 0.5],
] as const;

const zero = doubleDouble(0);
const gridPoints = 257;

/** The largest relative distance of a polynomial from 2^f over a range. */
function distanceFromExp2(
  coefficients: readonly number[],
  [low, high]: readonly [number, number],
): number {
  let worst = 0;
  for (let i = 0; i < gridPoints; i++) {
    const f = low + ((high - low) * i) / (gridPoints - 1);
    const value = coefficients.reduceRight((rest, coefficient) => rest * f + coefficient, 0);
    worst = Math.max(worst, Math.abs(value / 2 ** f - 1));
  }
  return worst;
}

/** What is known of a polynomial that a place evaluated last. */
interface KnownPolynomial {
  readonly coefficients: readonly number[];
  /** By range. */
  readonly distances: readonly number[];
}

/**
 * Recognises values that are 2^x by a polynomial: a value times 2^n that is a polynomial with constant coefficients in f = x − n,
 * where the polynomial is within 2^−8 of 2^f over [0, 1] or [−1/2, 1/2], whichever has f. Where n is 0, adding it to the exponent
 * leaves no trace, and the polynomial is the value: so it is if the same instruction's other results are scaled.
 */
export class Idioms {
  readonly #trace: Trace;
  readonly #polynomials = new Map<number, KnownPolynomial>();
  readonly #found = new Map<string, { degree: number; distance: number; count: number }>();

  /** The places that scale, by their operations and by those of what they scale. */
  readonly #sites = new Map<number, string>();

  /** @param trace of a whole run */
  constructor(trace: Trace) {
    this.#trace = trace;
    const { operation, a, count } = trace;
    for (let value = 0; value < count; value++) {
      const { origin, format, site } = trace.operationOf(value);
      if (origin !== 'scale' || format.isInteger) continue;
      this.#sites.set(operation[value], site);
      this.#sites.set(operation[a[value]], site);
    }
  }

  /** Whether there are operations whose results may be taken for a function. */
  get isAny(): boolean {
    return this.#sites.size > 0;
  }

  /** Whether results of an operation may be taken for a function. */
  has(operation: number): boolean {
    return this.#sites.has(operation);
  }

  /** The places that were recognised, in the order of the run. */
  get found(): readonly Idiom[] {
    return [...this.#found].map(([site, of]) => ({ function: 'exp2', site, ...of }));
  }

  /**
   * The function's value in place of a value; null where it is no idiom.
   *
   * @param value a result of an operation that may be taken for one (`has`)
   * @param realOf the real values of what is before it
   */
  take(value: number, realOf: (value: number) => DoubleDouble): DoubleDouble | null {
    const trace = this.#trace;
    const isScaled = trace.operationOf(value).origin === 'scale';
    const [scaled, exponent] = isScaled ? [trace.a[value], trace.c[value] | 0] : [value, 0];
    const polynomial = polynomialOf(trace, scaled, (at) => this.#isRest(at, exponent));
    if (polynomial === null) return null;
    const { variable, coefficients } = polynomial;
    if (variable === null || !this.#isRest(variable, exponent)) return null;
    const distance = this.#distanceOf(scaled, coefficients, trace.numberOf(variable));
    if (distance === null) return null;
    const site = this.#sites.get(trace.operation[value]) ?? '';
    const known = this.#found.get(site);
    this.#found.set(site, {
      degree: coefficients.length - 1,
      distance: Math.max(distance, known?.distance ?? 0),
      count: (known?.count ?? 0) + 1,
    });
    const x = addFloat64ToDoubleDouble(realOf(variable), exponent);
    return evaluateReal('exp2', x, zero, zero);
  }

  /** Whether a value is another one less an integer that was made of constants. Of sums a polynomial has some itself. */
  #isRest(value: number, integer: number): boolean {
    const trace = this.#trace;
    const { origin, function: name, limit } = trace.operationOf(value);
    if (origin !== 'function' || name !== 'subtract' || limit !== null) return false;
    const subtracted = trace.b[value];
    return (
      trace.numberOf(subtracted) === integer &&
      polynomialOf(trace, subtracted, () => false)?.variable === null
    );
  }

  /** The distance over the range that has f and on which it is less; null where the polynomial is not near 2^f there. */
  #distanceOf(scaled: number, coefficients: readonly number[], f: number): number | null {
    const operation = this.#trace.operation[scaled];
    let known = this.#polynomials.get(operation);
    const isSame =
      known?.coefficients.length === coefficients.length &&
      known.coefficients.every((coefficient, i) => coefficient === coefficients[i]);
    if (known === undefined || !isSame) {
      const distances = ranges.map((range) => distanceFromExp2(coefficients, range));
      this.#polynomials.set(operation, (known = { coefficients, distances }));
    }
    const { distances } = known;
    const best = Math.min(
      ...ranges.map(([low, high], i) => (f >= low && f <= high ? distances[i] : Infinity)),
    );
    return best <= largestDistance ? best : null;
  }
}
