import { decodeTensor, formats, type Tensor } from '../../../src/formats/index.js';
import {
  recurrentShape,
  softplusThreshold,
  type Mamba2Inputs,
  type RecurrentProblem,
} from '../../../src/problem/index.js';
import type { RecurrentArithmetic, RecurrentRounding } from '../arithmetic.js';
import type { Mamba2Change } from './change.js';

/** log(1 + e^x) of each number up to the threshold, in place: the exponential, the sum and the logarithm round, which errs as its argument would. */
function applySoftplus(values: Float64Array, threshold: number, rounding: RecurrentRounding): void {
  const exponential = rounding.exponential ?? Math.exp;
  const powers = values.map((x) => (x <= threshold ? exponential(x) : 0));
  rounding.value('decay', powers, 0, powers.length);
  const sums = powers.map((power) => 1 + power);
  rounding.value('time-step', sums, 0, sums.length);
  rounding.value('time-step', sums, 0, sums.length);
  for (let i = 0; i < values.length; i++) {
    if (!(values[i] <= threshold)) continue;
    const sum = 1 + powers[i];
    // What the sum was rounded by, beside the logarithm of what it is.
    values[i] = Math.log1p(powers[i]) + Math.log1p((sums[i] - sum) / sum);
  }
  rounding.value('time-step', values, 0, values.length);
}

/** Δ as a kernel makes it, [batch, tokens, heads]. */
export function kernelSteps(
  { dt, dtBias, dtSoftplus, dtLimit: [least, most] }: Mamba2Inputs,
  rounding: RecurrentRounding,
  { threshold = softplusThreshold, addsBiasBehind = false }: Mamba2Change,
): Float64Array {
  const values = decodeTensor(dt);
  const heads = dt.shape[2];
  const addBias = () => {
    if (!dtBias) return;
    const bias = decodeTensor(dtBias);
    for (let i = 0; i < values.length; i++) values[i] += bias[i % heads];
    rounding.value('time-step', values, 0, values.length);
  };
  if (!addsBiasBehind) addBias();
  if (dtSoftplus) applySoftplus(values, threshold, rounding);
  if (addsBiasBehind) addBias();
  for (let i = 0; i < values.length; i++) values[i] = Math.min(Math.max(values[i], least), most);
  return values;
}

/** How a kernel makes the recurrence of a Mamba-2 problem. */
export interface KernelSteps {
  readonly rounding: RecurrentRounding;
  readonly change?: Mamba2Change | undefined;
  /** Default: C and B are read as they are. */
  readonly arithmetic?: Pick<RecurrentArithmetic, 'form' | 'formats'>;
}

/** C or B as products of chunks read them: rounded where that format has fewer bits. */
function readAs(
  tensor: Tensor,
  { form, formats: of }: Pick<RecurrentArithmetic, 'form' | 'formats'>,
  rounding: RecurrentRounding,
): Tensor {
  const isNarrower = formats[of.operand].precision < formats[tensor.format].precision;
  if (form === 'recurrent' || !isNarrower) return tensor;
  const data = decodeTensor(tensor);
  rounding.value('operand', data, 0, data.length);
  return { format: 'fp64', shape: tensor.shape, data };
}

/** The recurrence that a kernel runs for a Mamba-2 problem: simple-gla of Δ x and Δ A, as it rounds them. */
export function kernelRecurrence(
  problem: RecurrentProblem,
  inputs: Mamba2Inputs,
  { rounding, change = {}, arithmetic }: KernelSteps,
): RecurrentProblem {
  const { q, k, v, initialState, cuSeqlens, scale = 1 } = problem;
  const { valueHeads: heads, valueDim } = recurrentShape({ ...problem, scale: 1 });
  const steps = kernelSteps(inputs, rounding, change);
  const { value = (x, step) => x * step } = change;
  const values = decodeTensor(v).map((x, i) => value(x, steps[Math.floor(i / valueDim)]));
  rounding.value('write', values, 0, values.length);
  const a = decodeTensor(inputs.a);
  const gates = steps.map((step, i) => step * a[i % heads]);
  rounding.value('gates', gates, 0, gates.length);
  return {
    family: 'simple-gla',
    scale,
    q: arithmetic ? readAs(q, arithmetic, rounding) : q,
    k: arithmetic ? readAs(k, arithmetic, rounding) : k,
    v: { format: 'fp64', shape: v.shape, data: values },
    g: { format: 'fp64', shape: inputs.dt.shape, data: gates },
    ...(initialState && { initialState }),
    ...(cuSeqlens && { cuSeqlens }),
  };
}
