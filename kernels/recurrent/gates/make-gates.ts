import { decodeTensor, type Tensor } from '../../../src/formats/index.js';
import {
  softplusThreshold,
  type GateInputs,
  type RecurrentProblem,
} from '../../../src/problem/index.js';
import type { RecurrentRounding } from '../arithmetic.js';
import { mapped } from '../faults/tensors.js';
import { kernelSteps } from '../mamba2/steps.js';
import type { GateChange } from './change.js';

const exact = (shape: readonly number[], data: Float64Array): Tensor => ({
  format: 'fp64',
  shape,
  data,
});

/** The rates of heads. */
function ratesOf(
  logarithms: Tensor,
  rounding: RecurrentRounding,
  rate: GateChange['rate'],
): Float64Array {
  const rates = decodeTensor(logarithms);
  if (rate) return rates.map(rate);
  const { exponential = Math.exp } = rounding;
  for (let i = 0; i < rates.length; i++) rates[i] = exponential(rates[i]);
  rounding.value('decay', rates, 0, rates.length);
  return rates;
}

/** g = −exp(A_log) · softplus(a + dt_bias), as a kernel rounds it. */
function gatesOf(
  { aLog, a, dtBias }: GateInputs,
  rounding: RecurrentRounding,
  { rate, sign = -1, threshold = softplusThreshold, addsBiasBehind }: GateChange,
): Tensor {
  const [, , heads, width = 1] = a.shape;
  // A softplus and its bias know no key dimensions: each is a head of its own.
  const inputs = {
    dt: { ...a, shape: [...a.shape.slice(0, 2), heads * width] },
    a: aLog,
    dtBias,
    dtSoftplus: threshold > -Infinity,
    dtLimit: [-Infinity, Infinity] as const,
  };
  const steps = kernelSteps(inputs, rounding, {
    threshold,
    ...(addsBiasBehind && { addsBiasBehind }),
  });
  const rates = ratesOf(aLog, rounding, rate);
  const gates = steps.map((step, i) => sign * rates[Math.floor(i / width) % heads] * step);
  rounding.value('gates', gates, 0, gates.length);
  return exact(a.shape, gates);
}

/** β = σ(b): the exponential, the sum and the quotient round. */
function strengthsOf(
  logits: Tensor,
  rounding: RecurrentRounding,
  strength: GateChange['strength'],
): Tensor {
  const given = decodeTensor(logits);
  if (strength) return exact(logits.shape, given.map(strength));
  const { exponential = Math.exp } = rounding;
  const powers = given.map((b) => exponential(-b));
  rounding.value('decay', powers, 0, powers.length);
  const strengths = powers.map((power) => 1 + power);
  rounding.value('time-step', strengths, 0, strengths.length);
  for (let i = 0; i < strengths.length; i++) strengths[i] = 1 / strengths[i];
  rounding.value('time-step', strengths, 0, strengths.length);
  return exact(logits.shape, strengths);
}

/** The recurrence that a kernel runs for a problem whose gates or write strengths it makes. */
export function withMadeGates(
  { gateInputs, gateBase, strengthLogits, ...rest }: RecurrentProblem,
  rounding: RecurrentRounding,
  change: GateChange = {},
): RecurrentProblem {
  // Units take powers of 2: nothing is rounded there that is not of gates of e.
  const binary = gateBase === 2 ? rest.g : undefined;
  return {
    ...rest,
    ...(binary && { g: mapped(binary, (x) => x * Math.LN2) }),
    ...(gateInputs && { g: gatesOf(gateInputs, rounding, change) }),
    ...(strengthLogits && { beta: strengthsOf(strengthLogits, rounding, change.strength) }),
  };
}
