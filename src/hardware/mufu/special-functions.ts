import { exp2Approx, exp2ApproxFtz } from './ex2.js';
import { exp2ApproxFp16, exp2ApproxFtzBf16, tanhApproxBf16, tanhApproxFp16 } from './half.js';
import { lg2ApproxFtz } from './lg2.js';
import { rsqrtApproxFtz } from './rsqrt.js';
import { rcpApproxFtz } from './rcp.js';
import { tanhApprox } from './tanh.js';

/**
 * Largest relative error of ex2.approx.ftz.f32 where the result is normal: over all inputs, on sm_90
 * silicon (`flashproof profile exp2`: 1.4396157e-7 for negative x, less for positive). Rounded up.
 */
export const hardwareExp2Error = 1.44e-7;

/** Below this ex2.approx.ftz.f32 flushes results to zero. */
export const hardwareExp2Flush = 2 ** -126;

/**
 * Largest relative error of rcp.approx.ftz.f32 for results that are normal numbers: over all inputs,
 * on sm_90 silicon (`flashproof profile rcp`: 9.82917e-8). Rounded up.
 */
export const hardwareReciprocalError = 9.83e-8;

/**
 * Largest error of lg2.approx.ftz.f32, absolute for results below 1 in magnitude and relative to
 * larger ones: over all inputs, on sm_90 silicon (`flashproof profile log2`). Also what the PTX ISA
 * promises.
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
  | 'ex2.approx.ftz.bf16'
  | 'ex2.approx.f16'
  | 'tanh.approx.bf16'
  | 'tanh.approx.f16';

/** One instruction of the special function unit. */
export interface SpecialFunction {
  /** The format of the input and of the result. */
  readonly format: 'fp32' | 'bf16' | 'fp16';
  /** From the input's bit pattern to the result's, both from 0 to 2^storageBits − 1. */
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
  'ex2.approx.ftz.bf16': { format: 'bf16', evaluate: exp2ApproxFtzBf16 },
  'ex2.approx.f16': { format: 'fp16', evaluate: exp2ApproxFp16 },
  'tanh.approx.bf16': { format: 'bf16', evaluate: tanhApproxBf16 },
  'tanh.approx.f16': { format: 'fp16', evaluate: tanhApproxFp16 },
};
