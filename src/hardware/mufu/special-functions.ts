import { exp2Approx, exp2ApproxFtz } from './exp2.js';
import { exp2ApproxFp16, exp2ApproxFtzBf16, tanhApproxBf16, tanhApproxFp16 } from './half.js';
import { lg2ApproxFtz } from './log2.js';
import { rsqrtApproxFtz } from './reciprocal-square-root.js';
import { rcpApproxFtz } from './reciprocal.js';
import { tanhApprox } from './tanh.js';

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
