import { type Allocator, instantiator } from '../../../src/reuse.js';
import type { TensorCoreKernels } from '../../../src/simd/index.js';
import { binary, type ForwardRecipe } from './forward.generated.js';
import {
  packConversion,
  packSegments,
  packSquares,
  specialFunctionTables,
} from '../../../src/hardware/index.js';
import { exp2Coefficients } from '../exp2-polynomial.js';
import { bitsOf, roundingConversions } from '../units.js';
import { naturalScale, polynomialColumnsOf, type Recipe } from '../recipe.js';

/** Exports of the module; addresses are of its memory, `tile` that of a `ForwardTile`. Its source documents the layouts. */
export interface ForwardKernels extends TensorCoreKernels, StageKernels {
  scaleSubtract(scores: number, count: number, scale: number, bias: number): void;
  quadSoftmaxStep: StageKernels['softmaxStep'];
  rescaleRows: StageKernels['rescaleOutput'];
  quadNormalise: StageKernels['normalise'];
  roundOutput(tile: number, count: number): void;
}

/** The stages between and after the matrix products. */
export interface StageKernels {
  softmaxStep(tile: number, rows: number, isFirst: boolean, isCounted: boolean): void;
  rescaleOutput(tile: number, rows: number, columns: number, isCounted: boolean): void;
  normalise(tile: number, rows: number, columns: number): void;
}

/** Makes instances of the module of the forward, each with memory of its own. */
export const instantiateForward = instantiator<ForwardKernels>(binary, 'the fa4 forward');

/** Bytes of the tables that a recipe in memory points to, with room to spare. */
export const parameterTableBytes = 2 ** 18 + 2 ** 14;

/** Degree of a polynomial that computes no column. */
const unusedDegree = 3;

/** A byte for every four columns of a block: the bits of those that the polynomial computes. */
function polynomialLanes(columns: readonly boolean[]): Uint8Array {
  const lanes = new Uint8Array(columns.length / 4);
  columns.forEach((isPolynomial, j) => {
    if (isPolynomial) lanes[j >> 2] |= 1 << (j % 4);
  });
  return lanes;
}

/**
 * A recipe as the forward's WebAssembly module takes it, with its tables placed in memory.
 *
 * @param counters the address of the four i32 counters of rescales
 */
export function forwardRecipeOf(
  { place }: Allocator,
  recipe: Recipe,
  counters: number,
): ForwardRecipe {
  const { format, outFormat, exponent, exponential, rescale, finish } = recipe;
  const degree = exponential.polynomial?.degree ?? unusedDegree;
  const { exp2: exp2Table, log2, reciprocal } = specialFunctionTables;
  return {
    scale: exponent.scale,
    threshold: rescale.threshold,
    maxOffset: exponent.offset,
    degree,
    coefficients: place(Float64Array.from(exp2Coefficients[degree])),
    exp2Segments: place(packSegments(exp2Table)),
    log2Segments: place(packSegments(log2)),
    reciprocalSegments: place(packSegments(reciprocal)),
    squares: place(packSquares()),
    exp2Shift: Math.log2(exp2Table.unitsPerUlp),
    log2Shift: Math.log2(log2.unitsPerUlp),
    reciprocalShift: Math.log2(reciprocal.unitsPerUlp),
    outFormat: place(packConversion(roundingConversions[outFormat])),
    polynomialLanes: place(polynomialLanes(polynomialColumnsOf(recipe))),
    fusesLse: finish.logSumExp === 'base-2-fused',
    counters,
    weightFormat: place(packConversion(roundingConversions[format])),
    weightBytes: bitsOf(format) / 8,
    outFactor: finish.outFactor,
    fusesExponent: exponent.isFused,
    flushes: exponential.unit === 'ex2.approx.ftz.f32',
    checksInfinity: rescale.checksInfinity,
    softmaxScale: naturalScale(recipe) ?? recipe.softmaxScale,
    emptyLse: finish.emptyLogSumExp,
    divides: finish.reciprocal === 'div.rn.f32',
  };
}
