import { bitCountRows } from './bits/counts.js';
import { fieldRows } from './bits/fields.js';
import { logicRows } from './bits/logic.js';
import { permutationRows } from './bits/permutation.js';
import { shiftRows } from './bits/shifts.js';
import { comparisonRows } from './comparisons.js';
import { exponentConversionRows } from './conversions/exponents.js';
import { floatIntegerConversionRows } from './conversions/float-integers.js';
import { floatConversionRows } from './conversions/floats.js';
import { packRows } from './conversions/packs.js';
import { pairConversionRows } from './conversions/pairs.js';
import { stochasticConversionRows } from './conversions/stochastic.js';
import { tf32ConversionRows } from './conversions/tf32.js';
import { extremumRows } from './extrema.js';
import { float32Quotients } from './float32/quotients.js';
import { float32Signs } from './float32/signs.js';
import { float32Sums } from './float32/sums.js';
import { float64Rows } from './float64/arithmetic.js';
import { halfRows } from './half/arithmetic.js';
import { mixedRows } from './half/mixed.js';
import { integerRows } from './integers/arithmetic.js';
import { integerConversionRows } from './integers/conversions.js';
import { carryRows } from './integers/carries.js';
import { dotProductRows } from './integers/dot-products.js';
import { productRows } from './integers/products.js';
import { integerQuotientRows } from './integers/quotients.js';
import { moveRows } from './moves.js';
import type { Row } from './row.js';
import { selectionRows } from './selections.js';
import { specialFunctionRows } from './special-functions.js';

/** The rows of all instructions on registers of a lane. */
export const laneRows: readonly Row[] = [
  ...[float32Sums, extremumRows, float32Signs, float32Quotients, specialFunctionRows].flat(),
  ...[pairConversionRows, floatConversionRows, floatIntegerConversionRows].flat(),
  ...[exponentConversionRows, stochasticConversionRows, tf32ConversionRows, packRows].flat(),
  ...[halfRows, mixedRows, float64Rows].flat(),
  ...[integerRows, integerQuotientRows, productRows, dotProductRows, carryRows].flat(),
  ...[moveRows, selectionRows, shiftRows, logicRows, fieldRows, permutationRows].flat(),
  ...[integerConversionRows, bitCountRows, comparisonRows].flat(),
];
