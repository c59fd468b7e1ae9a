import {
  createScalarEngine,
  type ArrayFunction,
  type ScalarEngine,
  type SegmentKernel,
} from '../../simd/index.js';
import { lazily } from '../../lazily.js';
import { exp2Interpolator } from './ex2.js';
import { truncatedSquare, type Interpolator } from './interpolation.js';
import { log2Interpolator } from './lg2.js';
import { reciprocalSquareRootInterpolator } from './rsqrt.js';
import { reciprocalInterpolator } from './rcp.js';
import { tanhBinades, tanhFirstExponent, type TanhBinade } from './tanh.js';

/** Everything in the unit that is data. */
export interface SpecialFunctionTables {
  readonly exp2: Interpolator;
  readonly log2: Interpolator;
  readonly reciprocal: Interpolator;
  readonly reciprocalSquareRoot: Interpolator;
  readonly tanh: readonly TanhBinade[];
}

/** The tables of the models, those of an H200. */
export const specialFunctionTables: SpecialFunctionTables = {
  exp2: exp2Interpolator,
  log2: log2Interpolator,
  reciprocal: reciprocalInterpolator,
  reciprocalSquareRoot: reciprocalSquareRootInterpolator,
  tanh: tanhBinades,
};

/** The instructions from fp32 to fp32. */
export type Float32SpecialFunctionName =
  | 'ex2.approx.ftz.f32'
  | 'ex2.approx.f32'
  | 'rcp.approx.ftz.f32'
  | 'lg2.approx.ftz.f32'
  | 'rsqrt.approx.ftz.f32'
  | 'tanh.approx.f32';

/** Inputs of the squarer: 17 bits. */
const squareCount = 2 ** 17;

/** The unit's square of every 17-bit number, which fits 16 bits; to be copied to WebAssembly memory. */
export const packSquares: () => Uint16Array = lazily(() =>
  Uint16Array.from({ length: squareCount }, (_, x) => truncatedSquare(x)),
);

const segmentBytes = 16;
const binadeWords = 3;
const tableBytes = 2 * squareCount + 2 ** 14;

/** The segments in the layout that src/simd/assembly/special-functions.ts reads from its memory. */
export function packSegments({ segments, c0Weight, c2Weight, bias }: Interpolator): DataView {
  const packed = new DataView(new ArrayBuffer(segments.length * segmentBytes));
  segments.forEach(([c0, c1, c2], i) => {
    packed.setBigInt64(i * segmentBytes, BigInt(c0 * c0Weight + bias), true);
    packed.setInt32(i * segmentBytes + 8, c1, true);
    packed.setInt32(i * segmentBytes + 12, c2 * c2Weight, true);
  });
  return packed;
}

function placeBinades(engine: ScalarEngine, binades: readonly TanhBinade[]): number {
  const records = new Int32Array(binades.length * binadeWords);
  binades.forEach(({ indexBits, unitExponent, interpolator }, i) => {
    const segments = engine.place(packSegments(interpolator));
    records.set([indexBits, unitExponent, segments], i * binadeWords);
  });
  return engine.place(records);
}

/**
 * The unit's fp32 instructions on arrays, in WebAssembly: for every input the bits that the functions
 * of {@link specialFunctions} give, several times as fast. Each call makes an instance with half a
 * megabyte of memory of its own; make one per thread.
 *
 * @param tables default the models' own; others show what an error in them does
 */
export function createSpecialFunctionArrays(
  tables: SpecialFunctionTables = specialFunctionTables,
): { readonly [Name in Float32SpecialFunctionName]: ArrayFunction } {
  const engine = createScalarEngine(tableBytes);
  const { kernels } = engine;
  const squares = engine.place(packSquares());
  const interpolating = (kernel: SegmentKernel, interpolator: Interpolator): ArrayFunction => {
    const segments = engine.place(packSegments(interpolator));
    const shift = Math.log2(interpolator.unitsPerUlp);
    return engine.arrayFunction((inputs, results, count) =>
      kernel(inputs, results, count, segments, squares, shift),
    );
  };
  const binades = placeBinades(engine, tables.tanh);
  return {
    'ex2.approx.ftz.f32': interpolating(kernels.exp2ApproxFtz, tables.exp2),
    'ex2.approx.f32': interpolating(kernels.exp2Approx, tables.exp2),
    'rcp.approx.ftz.f32': interpolating(kernels.rcpApproxFtz, tables.reciprocal),
    'lg2.approx.ftz.f32': interpolating(kernels.lg2ApproxFtz, tables.log2),
    'rsqrt.approx.ftz.f32': interpolating(kernels.rsqrtApproxFtz, tables.reciprocalSquareRoot),
    'tanh.approx.f32': engine.arrayFunction((inputs, results, count) =>
      kernels.tanhApprox(
        inputs,
        results,
        count,
        binades,
        squares,
        tanhFirstExponent,
        tables.tanh.length,
      ),
    ),
  };
}
