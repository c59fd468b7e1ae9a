import { exp2Approx, exp2ApproxFtz, exp2Interpolator } from './ex2.js';
import { exp2ApproxFp16, exp2ApproxFtzBf16, tanhApproxBf16, tanhApproxFp16 } from './half.js';
import { lg2Approx, lg2ApproxFtz, log2Interpolator } from './lg2.js';
import { reciprocalSquareRootInterpolator, rsqrtApprox, rsqrtApproxFtz } from './rsqrt.js';
import { rcpApprox, rcpApproxFtz, reciprocalInterpolator } from './rcp.js';
import { cosApprox, cosApproxFtz, sinApprox, sinApproxFtz, sineInterpolator } from './sine.js';
import { sqrtApprox, sqrtApproxFtz, squareRootInterpolator } from './sqrt.js';
import { tanhApprox, type TanhBinade, tanhBinades, tanhFirstExponent } from './tanh.js';
import {
  type ArrayFunction,
  createScalarEngine,
  type ScalarEngine,
  type SegmentKernel,
} from '../../simd/index.js';
import { lazily } from '../../reuse.js';
import { type Interpolator, truncatedSquare } from './interpolation.js';

/**
 * Largest relative error of ex2.approx.ftz.f32 where the result is normal: over all inputs, on sm_90
 * silicon (`flashproof profile exp2`: 1.4396157e-7 for negative x, less for positive). Rounded up.
 */
export const hardwareExp2Error = 1.44e-7;

/** The magnitude below which ex2.approx.ftz.f32 flushes results to zero. */
export const hardwareExp2Flush = 2 ** -126;

/**
 * Largest relative error of rcp.approx.ftz.f32 for results that are normal numbers: over all inputs,
 * on sm_90 silicon (`flashproof profile rcp`: 9.82917e-8). Rounded up.
 */
export const hardwareReciprocalError = 9.83e-8;

/**
 * Largest error of lg2.approx.ftz.f32, absolute for results below 1 in magnitude and relative to
 * larger ones: over all inputs, on sm_90 silicon (`flashproof profile log2`). The PTX ISA promises
 * the same.
 */
export const hardwareLog2Error = 2 ** -22;

/** The modelled instructions, as PTX spells them. */
export type SpecialFunctionName =
  | 'ex2.approx.ftz.f32'
  | 'ex2.approx.f32'
  | 'rcp.approx.ftz.f32'
  | 'lg2.approx.ftz.f32'
  | 'rsqrt.approx.ftz.f32'
  | 'tanh.approx.f32'
  | 'rcp.approx.f32'
  | 'lg2.approx.f32'
  | 'rsqrt.approx.f32'
  | 'sqrt.approx.ftz.f32'
  | 'sqrt.approx.f32'
  | 'sin.approx.ftz.f32'
  | 'sin.approx.f32'
  | 'cos.approx.ftz.f32'
  | 'cos.approx.f32'
  | 'ex2.approx.ftz.bf16'
  | 'ex2.approx.f16'
  | 'tanh.approx.bf16'
  | 'tanh.approx.f16';

/** One instruction of the special function unit. */
export interface SpecialFunction {
  /** The format of the input and of the result. */
  readonly format: 'fp32' | 'bf16' | 'fp16';
  /** Maps the input's bit pattern to the result's, both from 0 to 2^storageBits − 1. */
  readonly evaluate: (bits: number) => number;
}

/** The models of the special function unit's instructions. */
export const specialFunctions: { readonly [Name in SpecialFunctionName]: SpecialFunction } = {
  'ex2.approx.ftz.f32': { format: 'fp32', evaluate: exp2ApproxFtz },
  'ex2.approx.f32': { format: 'fp32', evaluate: exp2Approx },
  'rcp.approx.ftz.f32': { format: 'fp32', evaluate: rcpApproxFtz },
  'lg2.approx.ftz.f32': { format: 'fp32', evaluate: lg2ApproxFtz },
  'rsqrt.approx.ftz.f32': { format: 'fp32', evaluate: rsqrtApproxFtz },
  'tanh.approx.f32': { format: 'fp32', evaluate: tanhApprox },
  'rcp.approx.f32': { format: 'fp32', evaluate: rcpApprox },
  'lg2.approx.f32': { format: 'fp32', evaluate: lg2Approx },
  'rsqrt.approx.f32': { format: 'fp32', evaluate: rsqrtApprox },
  'sqrt.approx.ftz.f32': { format: 'fp32', evaluate: sqrtApproxFtz },
  'sqrt.approx.f32': { format: 'fp32', evaluate: sqrtApprox },
  'sin.approx.ftz.f32': { format: 'fp32', evaluate: sinApproxFtz },
  'sin.approx.f32': { format: 'fp32', evaluate: sinApprox },
  'cos.approx.ftz.f32': { format: 'fp32', evaluate: cosApproxFtz },
  'cos.approx.f32': { format: 'fp32', evaluate: cosApprox },
  'ex2.approx.ftz.bf16': { format: 'bf16', evaluate: exp2ApproxFtzBf16 },
  'ex2.approx.f16': { format: 'fp16', evaluate: exp2ApproxFp16 },
  'tanh.approx.bf16': { format: 'bf16', evaluate: tanhApproxBf16 },
  'tanh.approx.f16': { format: 'fp16', evaluate: tanhApproxFp16 },
};

/** The unit's tables. */
export interface SpecialFunctionTables {
  readonly exp2: Interpolator;
  readonly log2: Interpolator;
  readonly reciprocal: Interpolator;
  readonly reciprocalSquareRoot: Interpolator;
  readonly tanh: readonly TanhBinade[];
  readonly squareRoot: Interpolator;
  readonly sine: Interpolator;
}

/** The tables of the models, those of an H200. */
export const specialFunctionTables: SpecialFunctionTables = {
  exp2: exp2Interpolator,
  log2: log2Interpolator,
  reciprocal: reciprocalInterpolator,
  reciprocalSquareRoot: reciprocalSquareRootInterpolator,
  tanh: tanhBinades,
  squareRoot: squareRootInterpolator,
  sine: sineInterpolator,
};

/** The instructions from fp32 to fp32. */
export type Float32SpecialFunctionName =
  | 'ex2.approx.ftz.f32'
  | 'ex2.approx.f32'
  | 'rcp.approx.ftz.f32'
  | 'lg2.approx.ftz.f32'
  | 'rsqrt.approx.ftz.f32'
  | 'tanh.approx.f32'
  | 'rcp.approx.f32'
  | 'lg2.approx.f32'
  | 'rsqrt.approx.f32'
  | 'sqrt.approx.ftz.f32'
  | 'sqrt.approx.f32'
  | 'sin.approx.ftz.f32'
  | 'sin.approx.f32'
  | 'cos.approx.ftz.f32'
  | 'cos.approx.f32';

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
 * The unit's fp32 instructions on arrays, in WebAssembly: for every input the bits of the functions
 * of {@link specialFunctions}, several times as fast. Each call makes an instance with half a
 * megabyte of memory of its own; make one per thread.
 *
 * @param tables default the models' own; others show the effect of an error in them
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
    'rcp.approx.f32': interpolating(kernels.rcpApprox, tables.reciprocal),
    'lg2.approx.f32': interpolating(kernels.lg2Approx, tables.log2),
    'rsqrt.approx.f32': interpolating(kernels.rsqrtApprox, tables.reciprocalSquareRoot),
    'sqrt.approx.ftz.f32': interpolating(kernels.sqrtApproxFtz, tables.squareRoot),
    'sqrt.approx.f32': interpolating(kernels.sqrtApprox, tables.squareRoot),
    'sin.approx.ftz.f32': interpolating(kernels.sinApproxFtz, tables.sine),
    'sin.approx.f32': interpolating(kernels.sinApprox, tables.sine),
    'cos.approx.ftz.f32': interpolating(kernels.cosApproxFtz, tables.sine),
    'cos.approx.f32': interpolating(kernels.cosApprox, tables.sine),
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
