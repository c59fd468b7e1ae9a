import { scaledIntegerOf } from '../../src/arith/index.js';
import { operandRow, type Operand } from '../attention/operand.js';
import { scaledVector } from '../attention/scores.js';
import { ratioToNumber } from '../fixed-point.js';
import type { RoundedVector, Coefficients } from './exact-row.js';
import type { GradientSums } from './sums.js';

const slack = 1 + 2 ** -20;

/** A sum of products as an integer times a power of two, exactly, with a bound on the errors of its terms. */
class ExactSum {
  #integer = 0n;
  #exponent = 0;
  #error = 0;
  #isTouched = false;

  /** Adds integer · 2^exponent, off by at most `error`. */
  add(integer: bigint, exponent: number, error: number): void {
    this.#error += error;
    this.#isTouched = true;
    if (integer === 0n) return;
    if (this.#integer === 0n) this.#exponent = exponent;
    if (exponent < this.#exponent) {
      this.#integer <<= BigInt(this.#exponent - exponent);
      this.#exponent = exponent;
    }
    this.#integer += integer << BigInt(exponent - this.#exponent);
  }

  /** The sum times `scale` over `share`, rounded to fp64 once, with its radius. */
  rounded(scale: number, share: bigint): { readonly value: number; readonly radius: number } {
    const factor = scaledIntegerOf(scale);
    const value = ratioToNumber(
      this.#integer * factor.integer,
      share,
      this.#exponent + factor.exponent,
    );
    const ofTerms = this.#error * Math.abs(scale) * slack;
    // Errors of terms can underflow.
    const radius = ofTerms + 2 ** -53 * Math.abs(value) + 2 ** -1073;
    return { value, radius: this.#isTouched ? radius : 0 };
  }
}

/** Sums of some rows of a gradient, in exact arithmetic but for their coefficients. */
export interface ExactSums {
  /** Adds element `at` of the coefficients times a vector to row `to`. */
  readonly add: (to: number, coefficients: RoundedVector, at: number, vector: Float64Array) => void;
  readonly rounded: (
    row: number,
    column: number,
    scale: number,
  ) => { readonly value: number; readonly radius: number };
}

export function exactSums(rows: number, dim: number): ExactSums {
  const sums = Array.from({ length: rows * dim }, () => new ExactSum());
  let share = 1n;
  return {
    add: (to, coefficients, at, vector) => {
      share = coefficients.share;
      const coefficient = coefficients.integers[at];
      const { integers, exponent } = scaledVector(vector);
      for (let c = 0; c < dim; c++) {
        if (integers[c] === 0n) continue;
        const error = coefficients.radius[at] * Math.abs(vector[c]);
        sums[to * dim + c].add(coefficient * integers[c], coefficients.exponent + exponent, error);
      }
    },
    rounded: (row, column, scale) => sums[row * dim + column].rounded(scale, share),
  };
}

/** Errors below this share of a coefficient's largest possible value count as underflow. */
export const negligible = 2 ** -170;

/**
 * Adds a coefficient times a vector to a row of sums in fp64.
 * @param size the scale of the coefficient's errors
 * @param extent the largest that such coefficients are
 */
export function addRounded(
  sums: GradientSums,
  to: number,
  coefficients: Coefficients,
  { at, size, extent }: { readonly at: number; readonly size: number; readonly extent: number },
  vector: Float64Array,
): void {
  const { dim } = sums;
  const value = coefficients.values[at];
  const radius = coefficients.radius[at];
  const isNegligible = radius <= negligible * extent;
  // Rounded to fp64, and the product rounded.
  const error = ((isNegligible ? 0 : radius) + 2 ** -51 * Math.abs(value)) * slack;
  for (let c = 0; c < dim; c++) {
    const place = to * dim + c;
    sums.sum[place] += value * vector[c];
    sums.size[place] += size * Math.abs(vector[c]);
    sums.error[place] += error * Math.abs(vector[c]);
  }
  sums.additions[to]++;
  sums.floor[to] += (isNegligible ? radius : 0) + 2 ** -1070;
}

/** Σ of coefficients times rows of an operand, times `scale`, one sum a column: a row of dQ. */
export function exactProduct(
  coefficients: RoundedVector,
  operand: Operand,
  rows: Int32Array,
  scale: number,
) {
  const sums = exactSums(1, operand.dim);
  rows.forEach((row, at) => sums.add(0, coefficients, at, operandRow(operand, row)));
  return (column: number) => sums.rounded(0, column, scale);
}
