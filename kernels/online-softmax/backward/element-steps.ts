import {
  addFloat32,
  fusedMultiplyAddFloat32,
  multiplyFloat32,
  subtractFloat32,
} from '../../../src/arith/index.js';
import { tanhApprox } from '../../../src/hardware/index.js';
import type { ScoreChange } from '../score-change.js';
import { exp2Units, onNumbers } from '../units.js';
import type { BackwardRecipe } from './recipe.js';

/** P of a score: 2^(s·c − LSE·log2 e) by the law's unit; not yet rounded to the format of the inputs. */
export function weightOf(
  score: number,
  { scale, isFused, unit }: BackwardRecipe['weight'],
  logSumExp2: number,
): number {
  const exponent = isFused
    ? fusedMultiplyAddFloat32(score, scale, -logSumExp2)
    : addFloat32(multiplyFloat32(score, scale), -logSumExp2);
  return exp2Units[unit](exponent);
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
 * Factors of each dS before it is rounded: the slopes of a softcap, or a scale of all. Null for none.
 *
 * @param scores results of the tensor cores
 * @param scale no recipe has both it and a softcap
 */
export function derivativeFactors(
  scores: Float32Array | Float64Array,
  change: ScoreChange | null,
  scale: number | null,
): Float32Array | null {
  if (scale !== null) return new Float32Array(scores.length).fill(scale);
  return change === null ? null : scoreSlopes(scores, change);
}

/**
 * The slopes 1 − t² of a softcap at the tensor cores' scores, t = tanh(s·scale / cap) by
 * tanh.approx.f32; 1 − t² is one fused multiply-add. Null without a softcap.
 */
function scoreSlopes(
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
