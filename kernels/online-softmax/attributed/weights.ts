import { fusedMultiplyAddFloat32 } from '../../../src/arith/index.js';
import { createSpecialFunctionArrays } from '../../../src/hardware/index.js';
import { createExp2PolynomialArray } from '../exp2-polynomial.js';
import { bitsOf, type InputFormat } from '../units.js';
import { polynomialColumnsOf, type Recipe } from '../recipe.js';
import type { EmulatedTechniques } from '../../techniques.js';
import {
  decodeToFloat64,
  encodeFromFloat64,
  formats,
  type PatternArray,
  patternsOf,
} from '../../../src/formats/index.js';
import type { ExactArithmetic } from './engine.js';
import type { SummedWeights } from './row-sums.js';

/** The scale of the exponents: softmax scale · log2 e. */
export interface ExponentScale {
  /** The scale in fp64. */
  readonly exact: number;
  /** The kernel's scale: rounded to fp32. */
  readonly rounded: number;
  /** Added to every exponent, an fp32 number. */
  readonly offset: number;
  /** Whether the kernel's multiplication and addition round once. */
  readonly isFused: boolean;
}

/** The sizes of a block of scores. */
interface BlockSize {
  readonly rows: number;
  readonly columns: number;
}

/** The exponents x [rows × columns] of scores, exact: (s − m)·c + offset, −∞ for a masked score, for any c. */
export function exactExponents(
  target: Float64Array,
  scores: Float64Array,
  subtracted: Float64Array,
  scale: ExponentScale,
  { rows, columns }: BlockSize,
): void {
  for (let row = 0, i = 0; row < rows; row++)
    for (let j = 0; j < columns; j++, i++)
      target[i] =
        scores[i] === -Infinity
          ? -Infinity
          : (scores[i] - subtracted[row]) * scale.exact + scale.offset;
}

/**
 * The exponents by the kernel's instructions, at the fp32 numbers nearest to scores and maxima, plus the
 * contributions of the differences from these; for fp32 operands the fp32 numbers of the GPU.
 */
export function emulatedExponents(
  target: Float64Array,
  scores: Float64Array,
  subtracted: Float64Array,
  scale: ExponentScale,
  { rows, columns }: BlockSize,
): void {
  const { fround } = Math;
  for (let row = 0, i = 0; row < rows; row++) {
    const maximum = fround(subtracted[row]);
    const ofMaximum = maximum === subtracted[row] ? 0 : (subtracted[row] - maximum) * scale.exact;
    const bias = fround(scale.offset - fround(maximum * scale.rounded));
    for (let j = 0; j < columns; j++, i++) {
      const score = scores[i];
      const nearest = Math.fround(score);
      const x = scale.isFused
        ? fusedMultiplyAddFloat32(nearest, scale.rounded, bias)
        : fround(fround(nearest * scale.rounded) + bias);
      const ofScore = nearest === score ? 0 : (score - nearest) * scale.exact;
      target[i] = x + (ofScore - ofMaximum);
    }
  }
}

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
type WeightFunction = (
  weights: Float64Array,
  exponents: Float64Array,
  count: number,
  emulated: EmulatedTechniques,
) => void;

/**
 * The exponentials of a tile, of at most `capacity` elements in rows of the recipe's block of keys: in
 * each column by the unit or the polynomial, by the recipe's split, or exact (within 2^-51).
 */
export function createWeightFunction(
  recipe: Recipe,
  capacity: number,
  exact: ExactArithmetic,
): WeightFunction {
  const { keys: blockKeys } = recipe.tiling;
  const { unit, polynomial: software } = recipe.exponential;
  const hardware = createSpecialFunctionArrays()[unit];
  const polynomial = createExp2PolynomialArray(software?.degree);
  const nearest = new Float32Array(capacity);
  const inputs = new Uint32Array(nearest.buffer);
  const results = new Float32Array(capacity);
  const patterns = new Uint32Array(results.buffer);
  const isPolynomial = polynomialColumnsOf(recipe);
  const columnsOf = (polynomial: boolean): number[] =>
    [...isPolynomial.keys()].filter((j) => isPolynomial[j] === polynomial);
  const units = [
    { technique: 'exp2-hardware', evaluate: hardware, columns: columnsOf(false) },
    { technique: 'exp2-polynomial', evaluate: polynomial, columns: columnsOf(true) },
  ] as const;

  return (weights, exponents, count, emulated) => {
    const used = units.filter(({ columns }) => columns.length > 0);
    if (used.some(({ technique }) => !emulated.has(technique)))
      exact.powersOfTwo(weights, exponents.subarray(0, count));
    nearest.set(exponents.subarray(0, count));
    for (const { technique, evaluate, columns } of used) {
      if (!emulated.has(technique)) continue;
      evaluate(inputs.subarray(0, count), patterns);
      for (let first = 0; first < count; first += blockKeys)
        for (const j of columns) {
          const i = first + j;
          weights[i] = carriedOver(results[i], exponents[i] - nearest[i]);
        }
    }
  };
}

/** The weights P of a tile against one block, with the forms that instructions read. */
export interface BlockWeights extends SummedWeights {
  /** p rounded once to the format of the inputs: bit patterns, and values. */
  readonly patterns: PatternArray;
  readonly rounded: Float64Array;
}

/**
 * The weights [count] in the forms that the forward needs; rounds to nearest even. Beyond the largest
 * finite number fp8 saturates, as cvt.rn.satfinite does, and 16-bit formats give ∞.
 */
export function blockWeights(weights: Float64Array, format: InputFormat): BlockWeights {
  const overflow = bitsOf(format) === 8 ? 'saturate' : 'overflow';
  const storage = encodeFromFloat64(formats[format], weights, { overflow });
  return {
    weights,
    nearest: Float32Array.from(weights),
    patterns: patternsOf(storage, formats[format]),
    rounded: decodeToFloat64(storage, formats[format]),
  };
}
