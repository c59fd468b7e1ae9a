import { createSpecialFunctionArrays } from '../../../src/hardware/index.js';
import { createExp2PolynomialArray } from '../exp2-array.js';
import { fragmentColumns, usesPolynomial } from '../exp2-tuning.js';
import type { Fa4Configuration } from '../forward-configuration.js';
import type { EmulatedTechniques } from './techniques.js';

/** Beyond differences of this size exponents are so large that 2^x is 0 or ∞ on either side. */
const largestDifference = 2 ** -10;

/**
 * An exp2's result at the fp32 number nearest to x, carried over to x itself: times 2^difference, by
 * its series to the second order. Where 2^x is an fp32 number the difference is at most 2^-18, so
 * that the third order is below 2^-57.
 */
function carriedOver(result: number, difference: number): number {
  if (difference === 0 || !(Math.abs(difference) < largestDifference)) return result;
  const t = difference * Math.LN2;
  return result * (1 + (t + (t * t) / 2));
}

/** Computes the weights p of exponents x [count], both fp64. */
export type WeightFunction = (
  weights: Float64Array,
  exponents: Float64Array,
  count: number,
  emulated: EmulatedTechniques,
) => void;

/** For each column of a block whether the polynomial computes it. */
function polynomialColumns({ exp2, blockKeys }: Fa4Configuration): boolean[] {
  return Array.from({ length: blockKeys }, (_, j) =>
    usesPolynomial(
      exp2,
      Math.floor(j / fragmentColumns),
      j % fragmentColumns,
      blockKeys / fragmentColumns,
    ),
  );
}

/** Whether the polynomial computes any column: otherwise it makes no difference. */
export function hasPolynomialColumns(configuration: Fa4Configuration): boolean {
  return polynomialColumns(configuration).includes(true);
}

/**
 * The exponentials of a tile, of at most `capacity` elements in rows of the configuration's block of
 * keys: in each column by the unit or the polynomial as the configuration splits them, or exact by
 * ECMAScript's power function (within 2^-51 in V8).
 */
export function createWeightFunction(
  configuration: Fa4Configuration,
  capacity: number,
): WeightFunction {
  const { exp2, blockKeys } = configuration;
  const hardware = createSpecialFunctionArrays()['ex2.approx.ftz.f32'];
  const polynomial = createExp2PolynomialArray(exp2.degree);
  const nearest = new Float32Array(capacity);
  const inputs = new Uint32Array(nearest.buffer);
  const results = new Float32Array(capacity);
  const patterns = new Uint32Array(results.buffer);
  const isPolynomial = polynomialColumns(configuration);
  const columnsOf = (polynomial: boolean): number[] =>
    [...isPolynomial.keys()].filter((j) => isPolynomial[j] === polynomial);
  const units = [
    { technique: 'exp2-hardware', evaluate: hardware, columns: columnsOf(false) },
    { technique: 'exp2-polynomial', evaluate: polynomial, columns: columnsOf(true) },
  ] as const;

  return (weights, exponents, count, emulated) => {
    nearest.set(exponents.subarray(0, count));
    for (const { technique, evaluate, columns } of units) {
      if (columns.length === 0) continue;
      const isEmulated = emulated.has(technique);
      if (isEmulated) evaluate(inputs.subarray(0, count), patterns);
      for (let first = 0; first < count; first += blockKeys)
        for (const j of columns) {
          const x = exponents[first + j];
          weights[first + j] = isEmulated
            ? carriedOver(results[first + j], x - nearest[first + j])
            : 2 ** x;
        }
    }
  };
}
