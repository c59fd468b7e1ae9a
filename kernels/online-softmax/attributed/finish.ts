import { decodeToFloat64, encodeFromFloat64, formats } from '../../../src/formats/index.js';
import { type OutFormat, type Reciprocal, reciprocals } from '../units.js';
import { exactExponentScale, type Recipe } from '../recipe.js';
import { isEmptySum, recipeSteps } from '../steps.js';
import type { ExponentScale } from './weights.js';

/** The LSE of a row, natural logarithm, from its maximum in use and its row sum. */
type LogSumExp = (maximum: number, rowSum: number) => number;

/** (m·c + log2 l − offset)·ln 2 in fp64, with c in fp64. */
export function exactLogSumExp({ exact, offset }: ExponentScale): LogSumExp {
  return (maximum, rowSum) =>
    isEmptySum(rowSum) ? -Infinity : (maximum * exact + (Math.log2(rowSum) - offset)) * Math.LN2;
}

/**
 * The kernel's instructions at the fp32 numbers nearest to maximum and row sum, plus the contributions of
 * the differences from these.
 */
export function emulatedLogSumExp(recipe: Recipe): LogSumExp {
  const { logSumExp, logSumExp2 } = recipeSteps(recipe);
  const scale = exactExponentScale(recipe) * Math.LN2;
  return (maximum, rowSum) => {
    const [fromMaximum, nearest] = [Math.fround(maximum), Math.fround(rowSum)];
    const ofMaximum = fromMaximum === maximum ? 0 : (maximum - fromMaximum) * scale;
    const lse = logSumExp(logSumExp2(fromMaximum, nearest)) + ofMaximum;
    const ratio = rowSum / nearest;
    return nearest === rowSum || !(ratio > 0 && ratio < Infinity) ? lse : lse + Math.log(ratio);
  };
}

/** Divisor of the kernel's sums: the row sum, 1 for a row that has none. */
function divisor(sum: number): number {
  return isEmptySum(sum) ? 1 : sum;
}

/** Divides the sums of a row by its row sum, in fp64. */
function exactNormalise(sums: Float64Array, rowSum: number): void {
  const by = divisor(rowSum);
  for (let i = 0; i < sums.length; i++) sums[i] /= by;
}

/**
 * Multiplies the sums of a row by the reciprocal of its row sum as the kernel does: with the relative
 * error of its reciprocal at the fp32 number nearest to the row sum, and with the error of the fp32
 * product (to nearest even, subnormals kept) at the nearest fp32 operands.
 */
function emulatedNormalise(
  sums: Float64Array,
  rowSum: number,
  reciprocalOf: (x: number) => number,
): void {
  const by = divisor(rowSum);
  const nearestDivisor = Math.fround(by);
  const reciprocal = reciprocalOf(nearestDivisor);
  const factor = by === nearestDivisor ? reciprocal : reciprocal * (nearestDivisor / by);
  const nearestFactor = Math.fround(factor);
  for (let i = 0; i < sums.length; i++) {
    const nearest = Math.fround(sums[i]);
    const product = Math.fround(nearest * nearestFactor);
    sums[i] =
      nearest === sums[i] && nearestFactor === factor
        ? product
        : product + (sums[i] * factor - nearest * nearestFactor);
  }
}

/**
 * Divides O [rows × columns] by the row sums: the outputs [rows × vDim] without the padding.
 *
 * @param reciprocal the kernel's way to compute 1 / l; null for an exact division
 */
export function normalisedOutput(
  sums: Float64Array,
  rowSums: Float64Array,
  size: { readonly rows: number; readonly columns: number; readonly vDim: number },
  reciprocal: Reciprocal | null,
): Float64Array {
  const { rows, columns, vDim } = size;
  const out = new Float64Array(rows * vDim);
  for (let row = 0; row < rows; row++) {
    const of = out.subarray(row * vDim, (row + 1) * vDim);
    of.set(sums.subarray(row * columns, row * columns + vDim));
    if (reciprocal === null) exactNormalise(of, rowSums[row]);
    else emulatedNormalise(of, rowSums[row], reciprocals[reciprocal]);
  }
  return out;
}

/** The outputs rounded once to the format, to nearest even. */
export function roundedOutput(out: Float64Array, format: OutFormat): Float64Array {
  return decodeToFloat64(encodeFromFloat64(formats[format], out), formats[format]);
}

/** The LSEs of a tile's rows. */
export function rowLogSumExps(
  maxima: Float64Array,
  rowSums: Float64Array,
  rows: number,
  logSumExp: LogSumExp,
): Float64Array {
  return Float64Array.from({ length: rows }, (_, row) => logSumExp(maxima[row], rowSums[row]));
}
