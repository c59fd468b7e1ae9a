import { createFloat64Exp2 } from '../../oracles/index.js';
import { lazily } from '../reuse.js';

const exp2 = lazily(createFloat64Exp2);

/** Σ coefficients[k]·f^k by Horner's rule in fp64. */
function horner(coefficients: readonly number[], f: number): number {
  return coefficients.reduceRight((sum, c) => sum * f + c, 0);
}

/**
 * p(f)/2^f − 1 for a polynomial p, coefficients from c0 up, and 0 ≤ |f| ≤ 1. Nothing is rounded to fp32;
 * the fp64 evaluation errs by less than 2^-49 for the polynomials of degree up to 8 that come near 2^f.
 */
export function relativeError(coefficients: readonly number[], f: number): number {
  return horner(coefficients, f) * exp2()(-f) - 1;
}

/** A fraction and the relative error there. */
export interface ErrorAt {
  readonly f: number;
  readonly error: number;
}

/** Number of intervals between whose ends the derivative's sign is compared: far more than it has zeros. */
const intervals = 4096;

/**
 * The local extremes of the relative error on an interval within [−1, 1], its ends included, in
 * ascending order. They are the zeros of p′ − p·ln 2, a polynomial of p's degree, found by bisection to
 * fp64.
 */
export function errorExtremes(coefficients: readonly number[], from = 0, to = 1): ErrorAt[] {
  const slope = coefficients.map((c, k) => (k + 1) * (coefficients[k + 1] ?? 0) - c * Math.LN2);
  const at = (f: number): ErrorAt => ({ f, error: relativeError(coefficients, f) });
  const points = [from];
  for (let i = 0; i < intervals; i++) {
    let low = from + ((to - from) * i) / intervals;
    let high = from + ((to - from) * (i + 1)) / intervals;
    const sign = Math.sign(horner(slope, low));
    if (sign === Math.sign(horner(slope, high)) || sign === 0) continue;
    for (;;) {
      const middle = (low + high) / 2;
      if (middle <= low || middle >= high) break;
      if (Math.sign(horner(slope, middle)) === sign) low = middle;
      else high = middle;
    }
    if (high < to && high > from) points.push(high);
  }
  return [...points, to].map(at);
}

/** The extreme with the largest relative error in magnitude on an interval. */
export function largestRelativeError(coefficients: readonly number[], from = 0, to = 1): ErrorAt {
  return errorExtremes(coefficients, from, to).reduce((worst, next) =>
    Math.abs(next.error) > Math.abs(worst.error) ? next : worst,
  );
}

/** The best polynomial of a degree for 2^f on [0, 1], by its largest relative error. */
export interface Minimax {
  /** The coefficients from c0 up, fp64. */
  readonly coefficients: readonly number[];
  /** Its largest relative error. */
  readonly largestError: number;
  /**
   * A lower bound on the largest error of any polynomial of the degree under the same constraint:
   * the smallest magnitude of the errors at the alternation points (de la Vallée Poussin).
   */
  readonly lowerBound: number;
  /** Points at which the error is as large and alternates in sign: one more than free coefficients. */
  readonly alternation: readonly ErrorAt[];
}

/** Whether c0 is 1, so that 2^0 is exact, or free like the other coefficients. */
export type Constraint = 'c0 = 1' | 'free';

const mostIterations = 40;
/** Difference up to which extremes count as levelled: the evaluation errs by as much. */
const levelled = 2 ** -48;

/**
 * The best polynomial of a degree for 2^f in relative error on [0, 1], by Remez's exchange: errors of
 * ±E at one point more than there are free coefficients make a linear system; its solution's extremes
 * are the next points. The relative error is a combination of f^k·2^-f (from k = 1 with c0 = 1, on
 * (0, 1] then), a Chebyshev system, so the best polynomial is the one whose error alternates at that
 * many points (Cheney, Introduction to Approximation Theory, chapter 3).
 */
export function minimaxExp2(degree: number, constraint: Constraint): Minimax {
  const lowest = constraint === 'c0 = 1' ? 1 : 0;
  const pointCount = degree + 2 - lowest;
  let points = Array.from({ length: pointCount }, (_, i) => {
    const place = (i + lowest) / (pointCount - 1 + lowest);
    return (1 - Math.cos(Math.PI * place)) / 2;
  });
  let best: Minimax | undefined;
  for (let iteration = 0; iteration < mostIterations; iteration++) {
    const coefficients = levelledPolynomial(points, degree, lowest);
    const extremes = errorExtremes(coefficients);
    const alternation = alternatingExtremes(extremes, pointCount);
    if (alternation === undefined) break;
    const sizes = alternation.map(({ error }) => Math.abs(error));
    const largestError = Math.max(...extremes.map(({ error }) => Math.abs(error)));
    const next = { coefficients, largestError, lowerBound: Math.min(...sizes), alternation };
    if (best === undefined || next.largestError < best.largestError) best = next;
    if (largestError - next.lowerBound < levelled) break;
    points = alternation.map(({ f }) => f);
  }
  if (best === undefined) throw new Error(`no best polynomial of degree ${degree} was found`);
  return best;
}

/** The polynomial whose relative errors at the points are E, −E, E, … for some E. */
function levelledPolynomial(points: readonly number[], degree: number, lowest: number): number[] {
  const powers = Array.from({ length: degree + 1 - lowest }, (_, i) => i + lowest);
  // Multiplied by 2^f: Σ c_k f^k ∓ E·2^f = 2^f − (1 with c0 = 1).
  const rows = points.map((f, i) => {
    const power = 1 / (1 + relativeError([1], f));
    const sign = i % 2 === 0 ? 1 : -1;
    return [...powers.map((k) => f ** k), -sign * power, power - lowest];
  });
  const solution = solveLinear(rows);
  return [...(lowest === 1 ? [1] : []), ...solution.slice(0, -1)];
}

/** The largest extreme of each run of one sign; among these, the `count` neighbours with the largest errors. */
function alternatingExtremes(
  extremes: readonly ErrorAt[],
  count: number,
): readonly ErrorAt[] | undefined {
  const alternating: ErrorAt[] = [];
  for (const extreme of extremes) {
    const last = alternating.at(-1);
    if (extreme.error === 0) continue;
    if (last === undefined || Math.sign(last.error) !== Math.sign(extreme.error))
      alternating.push(extreme);
    else if (Math.abs(extreme.error) > Math.abs(last.error)) alternating.splice(-1, 1, extreme);
  }
  while (alternating.length > count) {
    const [first, last] = [alternating[0], alternating[alternating.length - 1]];
    if (Math.abs(first.error) < Math.abs(last.error)) alternating.shift();
    else alternating.pop();
  }
  return alternating.length === count ? alternating : undefined;
}

/**
 * The solution of a system of linear equations by Gaussian elimination with partial pivoting in fp64.
 * @param rows one equation each: the coefficients, then the right-hand side; as many as unknowns
 * @throws Error when the system is singular
 */
export function solveLinear(rows: readonly (readonly number[])[]): number[] {
  const size = rows.length;
  const work = rows.map((row) => [...row]);
  for (let column = 0; column < size; column++) {
    let pivot = column;
    for (let row = column + 1; row < size; row++)
      if (Math.abs(work[row][column]) > Math.abs(work[pivot][column])) pivot = row;
    if (work[pivot][column] === 0) throw new Error('the linear system is singular');
    [work[column], work[pivot]] = [work[pivot], work[column]];
    for (let row = column + 1; row < size; row++) {
      const factor = work[row][column] / work[column][column];
      for (let k = column; k <= size; k++) work[row][k] -= factor * work[column][k];
    }
  }
  const solution = new Array<number>(size).fill(0);
  for (let row = size - 1; row >= 0; row--) {
    let rest = work[row][size];
    for (let k = row + 1; k < size; k++) rest -= work[row][k] * solution[k];
    solution[row] = rest / work[row][row];
  }
  return solution;
}
