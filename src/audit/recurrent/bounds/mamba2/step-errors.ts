import { mamba2Recurrence, mamba2Steps } from '../../../../../oracles/index.js';
import { decodeTensor } from '../../../../formats/index.js';
import {
  softplusThreshold,
  type Mamba2Inputs,
  type RecurrentProblem,
} from '../../../../problem/index.js';
import { exponentialUnits } from '../input-errors.js';
import type { Roundings } from '../roundings.js';

/**
 * What a kernel's Δ errs by at most, Δ the exact one: dt + dt_bias is rounded; of its softplus the exponential errs by the argument's rounding and by that of
 * its product with log2 e, 1 + e^x by a rounding, the logarithm by 2^-22 of log2 where a unit computes it (lg2.approx), or of itself if that is more, and by a few
 * roundings. Clamping does not add to it, but limits are rounded.
 */
function stepError(
  x: number,
  hasBias: boolean,
  step: number,
  { dtSoftplus }: Mamba2Inputs,
  unit: number,
): number {
  const sum = hasBias ? unit * Math.abs(x) : 0;
  const rounded = 2 * unit * Math.abs(step);
  // Beyond the threshold it is the sum itself; a sum that rounds to the other side of it is within 2^-28 of its softplus.
  if (!dtSoftplus || x > softplusThreshold + 1) return sum + rounded;
  const power = Math.exp(x);
  const ofPower = Math.expm1(sum + 2 * unit * Math.abs(x)) + exponentialUnits * unit;
  const share = power / (1 + power);
  return share * ofPower * (1 + 2 ** -10) + 5 * unit * Math.max(1, step) + 2 * rounded;
}

/** Δ of all tokens and heads, and what a kernel's err by, [batch, tokens, heads]; 0 where Δ is 0, as the sign of dt + dt_bias is right. */
export function kernelSteps(
  inputs: Mamba2Inputs,
  unit: number,
): { readonly values: Float64Array; readonly errors: Float64Array } {
  const { values } = mamba2Steps(inputs);
  const dt = decodeTensor(inputs.dt);
  const heads = inputs.dt.shape[2];
  const bias = inputs.dtBias && decodeTensor(inputs.dtBias);
  const errors = values.map((step, i) => {
    if (step === 0) return 0;
    const x = dt[i] + (bias ? bias[i % heads] : 0);
    return stepError(x, bias !== undefined, step, inputs, unit);
  });
  return { values, errors };
}

/**
 * The recurrence of a Mamba-2 problem with what a kernel's values and gates err by before they are rounded, relative to themselves: Δ's error, and a rounding of
 * each product.
 */
export function kernelProblem(
  problem: RecurrentProblem,
  inputs: Mamba2Inputs,
  { operation, of }: Roundings,
): RecurrentProblem {
  const { plain } = mamba2Recurrence(problem, inputs);
  const { values, errors } = kernelSteps(inputs, Math.max(operation, of['time-step'].unit));
  const stepErrors = errors.map((error, i) =>
    values[i] === 0 ? 0 : error / Math.abs(values[i]) + 4 * operation,
  );
  return { ...plain, stepErrors };
}
