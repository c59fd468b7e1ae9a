import { type Allocator, instantiator } from '../../../src/reuse/index.js';
import type { TensorCoreKernels } from '../../../src/simd/index.js';
import { binary } from './forward.generated.js';
import {
  packConversion,
  packSegments,
  packSquares,
  specialFunctionTables,
} from '../../../src/hardware/index.js';
import { exp2Coefficients } from '../exp2-polynomial.js';
import { bitsOf, roundingConversions } from '../units.js';
import { naturalScale, polynomialColumnsOf, type Recipe } from '../recipe.js';

/** Exports of the module; addresses are of its memory. Its source documents the layouts. */
export interface ForwardKernels extends TensorCoreKernels, StageKernels {
  scaleSubtract(scores: number, count: number, scale: number, bias: number): void;
  quadSoftmaxStep: StageKernels['softmaxStep'];
  rescaleRows: StageKernels['rescaleOutput'];
  quadNormalise: StageKernels['normalise'];
  roundOutput(out: number, result: number, count: number, parameters: number): void;
}

/** The stages between and after the matrix products. */
export interface StageKernels {
  softmaxStep(
    scores: number,
    weights: number,
    visible: number,
    maxima: number,
    sums: number,
    alphas: number,
    rescales: number,
    rows: number,
    columns: number,
    isFirst: number,
    isCounted: number,
    parameters: number,
  ): void;
  rescaleOutput(
    out: number,
    alphas: number,
    rows: number,
    columns: number,
    isCounted: number,
    parameters: number,
  ): void;
  normalise(
    out: number,
    lse: number,
    maxima: number,
    sums: number,
    rows: number,
    columns: number,
    parameters: number,
  ): void;
}

/** Makes instances of the module of the forward, each with memory of its own. */
export const instantiateForward = instantiator<ForwardKernels>(binary, 'the fa4 forward');

/** Bytes of the tables that a record of parameters points to, with room to spare. */
export const parameterTableBytes = 2 ** 18 + 2 ** 14;

const recordBytes = 100;
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
 * Places the record that the forward's WebAssembly module takes its parameters from, and the tables
 * that it points to, and returns its address. The head of assembly/forward.ts
 * gives the layout.
 *
 * @param counters the address of the four i32 counters of rescales
 */
export function placeForwardParameters(
  { allocate, place }: Allocator,
  { buffer }: WebAssembly.Memory,
  recipe: Recipe,
  counters: number,
): number {
  const { format, outFormat, exponent, exponential, rescale, finish } = recipe;
  const degree = exponential.polynomial?.degree ?? unusedDegree;
  const { exp2: exp2Table, log2, reciprocal } = specialFunctionTables;
  const tables = [exp2Table, log2, reciprocal];
  const address = allocate(recordBytes);
  const record = new DataView(buffer, address, recordBytes);
  [exponent.scale, rescale.threshold, exponent.offset].forEach((value, i) =>
    record.setFloat32(4 * i, value, true),
  );
  [
    degree,
    place(Float64Array.from(exp2Coefficients[degree])),
    ...tables.map((table) => place(packSegments(table))),
    place(packSquares()),
    ...tables.map(({ unitsPerUlp }) => Math.log2(unitsPerUlp)),
    place(packConversion(roundingConversions[outFormat])),
    place(polynomialLanes(polynomialColumnsOf(recipe))),
    finish.logSumExp === 'base-2-fused' ? 1 : 0,
    counters,
    place(packConversion(roundingConversions[format])),
    bitsOf(format) / 8,
  ].forEach((word, i) => record.setInt32(12 + 4 * i, word, true));
  record.setFloat32(72, finish.outFactor, true);
  [exponent.isFused, exponential.unit === 'ex2.approx.ftz.f32', rescale.checksInfinity].forEach(
    (flag, i) => record.setInt32(76 + 4 * i, flag ? 1 : 0, true),
  );
  record.setFloat32(88, naturalScale(recipe) ?? recipe.softmaxScale, true);
  record.setFloat32(92, finish.emptyLogSumExp, true);
  record.setInt32(96, finish.reciprocal === 'div.rn.f32' ? 1 : 0, true);
  return address;
}
