import { decodeTensor } from '../../../src/formats/index.js';
import type { Mamba2Inputs, RecurrentProblem } from '../../../src/problem/index.js';
import type { ScaledReferenceQuantity } from '../../attention/attention.js';
import { checkFinite } from '../token-operands.js';
import { gateFactor } from './softplus.js';

const u = 2 ** -53;

/** A loss by underflow, and what radii are raised by for their own roundings. */
const [tiny, slack] = [2 ** -970, 1 + 2 ** -40];

/** Adds D x to outputs of the state, in place: the product and the sum are rounded once each. */
function addSkip(
  { values, radius, magnitude }: ScaledReferenceQuantity,
  { v }: RecurrentProblem,
  d: Float64Array,
): void {
  const x = decodeTensor(v);
  const [, , heads, valueDim] = v.shape;
  for (let i = 0; i < values.length; i++) {
    const head = Math.floor(i / valueDim) % heads;
    const skip = x[i] * (d.length === heads ? d[head] : d[head * valueDim + (i % valueDim)]);
    values[i] += skip;
    radius[i] = (radius[i] + u * (Math.abs(skip) + Math.abs(values[i])) + tiny) * slack;
    magnitude[i] += Math.abs(skip);
  }
}

/** Multiplies outputs by z σ(z), in place. */
function applyGate({ values, radius, magnitude }: ScaledReferenceQuantity, z: Float64Array): void {
  for (let i = 0; i < values.length; i++) {
    const gate = gateFactor(z[i]);
    const [size, factor] = [Math.abs(values[i]), Math.abs(gate.value)];
    values[i] *= gate.value;
    const ofFactors = radius[i] * (factor + gate.radius) + size * gate.radius;
    radius[i] = (ofFactors + u * Math.abs(values[i]) + tiny) * slack;
    magnitude[i] *= factor;
  }
}

/**
 * Makes Mamba-2's outputs of those of its recurrence, in place: (y + D x) z σ(z), with their radii and magnitudes.
 * @throws RequestError for a D or z that is not finite
 */
export function finishOutputs(
  out: ScaledReferenceQuantity,
  problem: RecurrentProblem,
  { d, z }: Mamba2Inputs,
): void {
  if (d) {
    const skips = decodeTensor(d);
    checkFinite(skips, 'D');
    addSkip(out, problem, skips);
  }
  if (z) {
    const gates = decodeTensor(z);
    checkFinite(gates, 'z');
    applyGate(out, gates);
  }
}
