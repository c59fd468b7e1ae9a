import {
  fusedMultiplyAddFloat32,
  multiplyFloat32,
  subtractFloat32,
} from '../../../src/arith/index.js';
import { tanhApprox } from '../../../src/hardware/index.js';
import type { ScoreChange } from '../score-change.js';
import { exp2Hardware, onNumbers } from '../units.js';

/**
 * P of a score: 2^(s·c − LSE·log2 e) by ex2.approx.ftz.f32, of an exponent that is rounded once; not yet rounded to
 * the format of the inputs.
 */
export function weightOf(score: number, exponentScale: number, logSumExp2: number): number {
  return exp2Hardware(fusedMultiplyAddFloat32(score, exponentScale, -logSumExp2));
}

/** dS = P·(dP − D), each operation rounded to fp32; times the slope of a softcap where there is one. */
export function scoreDerivative(
  weight: number,
  derivative: number,
  productSum: number,
  slope: number | null,
): number {
  const product = multiplyFloat32(weight, subtractFloat32(derivative, productSum));
  return slope === null ? product : multiplyFloat32(product, slope);
}

const tanhHardware = onNumbers(tanhApprox);

/**
 * The slopes 1 − t² of a softcap at scores as the tensor cores left them, t = tanh(s·scale / cap) by
 * tanh.approx.f32; 1 − t² is one fused multiply-add. Null without a softcap.
 */
export function scoreSlopes(
  scores: Float32Array | Float64Array,
  { scale, softcap }: ScoreChange,
): Float32Array | null {
  if (softcap === null) return null;
  const { fround } = Math;
  const cap = fround(softcap);
  return Float32Array.from(scores, (score) => {
    const tanh = tanhHardware(fround(fround(score * scale) / cap));
    return fusedMultiplyAddFloat32(-tanh, tanh, 1);
  });
}
