import { recurrentGradients } from '../../../../../oracles/index.js';
import { decodeTensor } from '../../../../formats/index.js';
import {
  softplusThreshold,
  type RecurrentGradientInputs,
  type RecurrentResults,
} from '../../../../problem/index.js';
import { exponentialUnits } from '../input-errors.js';
import type { Roundings } from '../roundings.js';
import type { SteppedProblem } from './output-errors.js';
import { kernelSteps } from './step-errors.js';

/** What numbers that underflow add to a gradient, and sums of them. */
const lost = 2 ** -100;

/** What bounds of gradients are made of. */
interface Chain {
  readonly stepped: SteppedProblem;
  readonly roundings: Roundings;
  readonly dout: Float64Array;
  readonly x: Float64Array;
  readonly heads: number;
  readonly dim: number;
  /** Δ and its relative errors in a kernel, [batch, tokens, heads]. */
  readonly steps: Float64Array;
  readonly stepErrors: Float64Array;
  /** Gradients of the recurrence's values and gates, and what a kernel's err by. */
  readonly dv: Float64Array;
  readonly ofValues: Float64Array;
  readonly dg: Float64Array;
  readonly ofGates: Float64Array;
}

/** dx = Δ dv + D dy, both products and the sum rounded; dD is a sum over all tokens. */
function boundValues({
  stepped,
  roundings,
  dout,
  x,
  heads,
  dim,
  steps,
  stepErrors,
  dv,
  ofValues,
}: Chain) {
  const { d } = stepped.inputs;
  const factors = d && decodeTensor(d);
  const { operation, sum } = roundings;
  const dx = new Float64Array(x.length);
  const dD = factors && new Float64Array(factors.length);
  const tokens = x.length / (heads * dim);
  const ofSum = sum(tokens * dim);
  for (let i = 0; i < x.length; i++) {
    const row = Math.floor(i / dim);
    const [head, c] = [row % heads, i % dim];
    const step = Math.abs(steps[row]) * (1 + stepErrors[row]);
    const made = step * ofValues[i] + stepErrors[row] * Math.abs(steps[row] * dv[i]);
    const at = factors?.length === heads ? head : head * dim + c;
    const skip = factors ? Math.abs(factors[at] * dout[i]) : 0;
    const size = Math.abs(steps[row] * dv[i]) + made + skip;
    dx[i] = made + 4 * operation * size + lost;
    if (dD) dD[at] += ofSum * Math.abs(dout[i] * x[i]) + lost;
  }
  return { dv: dx, ...(dD && { dD }) };
}

/** What the slope of Δ errs by, and the largest that it may be where a kernel may take the other side of a limit: 0 where it may not. */
function slopeBounds({ stepped: { inputs }, roundings: { operation }, heads }: Chain) {
  const { dt, dtBias, dtSoftplus, dtLimit } = inputs;
  const given = decodeTensor(dt);
  const bias = dtBias && decodeTensor(dtBias);
  const open = kernelSteps({ ...inputs, dtLimit: [-Number.MAX_VALUE, Infinity] }, operation);
  return (row: number) => {
    const x = given[row] + (bias ? bias[row % heads] : 0);
    const isSoft = dtSoftplus && x <= softplusThreshold + 1;
    const slope = isSoft ? 1 / (1 + Math.exp(-x)) : 1;
    const share = isSoft
      ? Math.expm1(4 * operation * Math.abs(x)) + (exponentialUnits + 4) * operation
      : 0;
    const step = open.values[row];
    const isClamped = step < dtLimit[0] || step > dtLimit[1];
    const isNear = dtLimit.some(
      (limit) => Math.abs(step - limit) <= open.errors[row] + 2 * operation * Math.abs(limit),
    );
    return { slope, share, isClamped, isNear: isNear && (open.errors[row] > 0 || dtSoftplus) };
  };
}

/** ddt = (Σ dv x + A dg) dΔ/d(dt), dA = Σ dg Δ and ddt_bias = Σ ddt. */
function boundGates(chain: Chain) {
  const { stepped, roundings, x, heads, dim, steps, stepErrors, dv, ofValues, dg, ofGates } = chain;
  const { operation, sum } = roundings;
  const a = decodeTensor(stepped.inputs.a);
  const slopeOf = slopeBounds(chain);
  const tokens = steps.length / heads;
  const [ofSum, ofTokens] = [sum(dim + 4), sum(tokens)];
  const ddt = new Float64Array(steps.length);
  const [dA, ofBias] = [new Float64Array(heads), new Float64Array(heads)];
  for (let row = 0; row < steps.length; row++) {
    const head = row % heads;
    const rate = Math.abs(a[head]);
    let [value, error, size] = [a[head] * dg[row], rate * ofGates[row], rate * Math.abs(dg[row])];
    for (let i = row * dim; i < (row + 1) * dim; i++) {
      value += x[i] * dv[i];
      error += Math.abs(x[i]) * ofValues[i];
      size += Math.abs(x[i] * dv[i]);
    }
    error += ofSum * (size + error) + lost;
    const { slope, share, isClamped, isNear } = slopeOf(row);
    const most = Math.abs(value) + error;
    const open = slope * (error + (share + 2 * operation) * most) + lost;
    ddt[row] = isNear ? open + slope * most : isClamped ? 0 : open;
    const step = Math.abs(steps[row]);
    const gate = step * Math.abs(dg[row]);
    const ofGate = step * (1 + stepErrors[row]) * ofGates[row] + stepErrors[row] * gate;
    dA[head] += ofGate + ofTokens * (gate + ofGate) + lost;
    ofBias[head] += ddt[row] + ofTokens * ((isClamped ? 0 : slope) * Math.abs(value) + ddt[row]);
  }
  return { ddt, dA, ...(stepped.inputs.dtBias && { ddt_bias: ofBias }) };
}

/** Bounds of the gradients of Mamba-2's own inputs, by those of its recurrence's, with dv those of x; there are none beside a gate z. */
export function chainErrors(
  results: RecurrentResults<Float64Array>,
  stepped: SteppedProblem,
  gradientInputs: RecurrentGradientInputs,
  roundings: Roundings,
): RecurrentResults<Float64Array> {
  const { dv: ofValues, dg: ofGates, ...others } = results;
  if (ofValues === undefined || ofGates === undefined) return others;
  const { problem, plain, inputs } = stepped;
  const { dv, dg } = recurrentGradients(plain, gradientInputs).quantities;
  const [, , heads, dim] = problem.v.shape;
  const { values: steps } = kernelSteps(inputs, roundings.operation);
  const chain: Chain = {
    stepped,
    roundings,
    dout: decodeTensor(gradientInputs.dout),
    x: decodeTensor(problem.v),
    heads,
    dim,
    steps,
    stepErrors: plain.stepErrors ?? new Float64Array(steps.length),
    dv: dv.values,
    ofValues,
    dg: dg?.values ?? new Float64Array(ofGates.length),
    ofGates,
  };
  return { ...others, ...boundValues(chain), ...boundGates(chain) };
}
