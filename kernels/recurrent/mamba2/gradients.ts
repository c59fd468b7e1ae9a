import { decodeTensor } from '../../../src/formats/index.js';
import {
  softplusThreshold,
  type Mamba2Inputs,
  type RecurrentGradientInputs,
  type RecurrentProblem,
  type RecurrentResults,
} from '../../../src/problem/index.js';
import type { RecurrentRounding } from '../arithmetic.js';
import type { Mamba2Change } from './change.js';
import { kernelSteps } from './steps.js';

/** A Mamba-2 problem whose gradients are made. */
interface Chain {
  readonly problem: RecurrentProblem;
  readonly inputs: Mamba2Inputs;
  readonly rounding: RecurrentRounding;
  readonly change: Mamba2Change;
  readonly steps: Float64Array;
  readonly dout: Float64Array;
}

/** Adds what tokens give to sums, which round after each. */
function sumOverTokens(
  sums: Float64Array,
  tokens: number,
  rounding: RecurrentRounding,
  addToken: (token: number) => void,
): void {
  for (let token = 0; token < tokens; token++) {
    addToken(token);
    rounding.value('sum', sums, 0, sums.length);
  }
}

/** dx = Δ dv + D dy, and dD. */
function valueGradients(
  { problem, inputs: { d }, rounding, steps, dout, change }: Chain,
  dv: Float64Array,
) {
  const [, , heads, dim] = problem.v.shape;
  const x = decodeTensor(problem.v);
  const dx = dv.map((one, i) => one * steps[Math.floor(i / dim)]);
  rounding.value('sum', dx, 0, dx.length);
  if (!d) return { dx };
  const factors = decodeTensor(d);
  const isByHead = d.shape.length === 1;
  const placeOf = (i: number) => {
    const head = Math.floor(i / dim) % heads;
    return isByHead ? head : head * dim + (i % dim);
  };
  const dD = new Float64Array(factors.length);
  for (let i = 0; i < dx.length; i++) {
    if (change.skipsGradient !== true) dx[i] += factors[placeOf(i)] * dout[i];
  }
  sumOverTokens(dD, dout.length / (heads * dim), rounding, (token) => {
    for (let i = token * heads * dim; i < (token + 1) * heads * dim; i++)
      dD[placeOf(i)] += dout[i] * x[i];
  });
  rounding.value('sum', dx, 0, dx.length);
  return { dx, dD };
}

/** dΔ/d(dt), 0 where Δ is clamped. */
function slopesOf({ inputs, rounding, change }: Chain): Float64Array {
  const {
    dtSoftplus,
    dtLimit: [least, most],
    dtBias,
  } = inputs;
  const { threshold = softplusThreshold } = change;
  const open = kernelSteps({ ...inputs, dtLimit: [-Infinity, Infinity] }, rounding, change);
  const bias = dtBias && decodeTensor(dtBias);
  const slopes = decodeTensor(inputs.dt).map((dt, i) => {
    const x = dt + (bias ? bias[i % bias.length] : 0);
    return dtSoftplus && x <= threshold ? 1 / (1 + Math.exp(-x)) : 1;
  });
  rounding.value('decay', slopes, 0, slopes.length);
  return slopes.map((slope, i) => (open[i] < least || open[i] > most ? 0 : slope));
}

/** ddt, dA and ddt_bias. */
function gateGradients(chain: Chain, dv: Float64Array, dg: Float64Array) {
  const { problem, inputs, rounding, steps, change } = chain;
  const [, , heads, dim] = problem.v.shape;
  const x = decodeTensor(problem.v);
  const a = decodeTensor(inputs.a);
  const slopes = slopesOf(chain);
  const rateOf = (head: number) => a[change.takesNextRate === true ? (head + 1) % heads : head];
  const ddt = dg.map((one, row) => {
    let sum = rateOf(row % heads) * one;
    for (let i = row * dim; i < (row + 1) * dim; i++) sum += x[i] * dv[i];
    return sum;
  });
  rounding.value('sum', ddt, 0, ddt.length);
  if (change.lacksSlope !== true) for (let i = 0; i < ddt.length; i++) ddt[i] *= slopes[i];
  rounding.value('sum', ddt, 0, ddt.length);
  const [dA, ofBias] = [new Float64Array(heads), new Float64Array(heads)];
  const tokens = dg.length / heads;
  sumOverTokens(dA, tokens, rounding, (token) => {
    for (let head = 0; head < heads; head++)
      dA[head] += dg[token * heads + head] * steps[token * heads + head];
  });
  sumOverTokens(ofBias, tokens, rounding, (token) => {
    for (let head = 0; head < heads; head++) ofBias[head] += ddt[token * heads + head];
  });
  return { ddt, dA, ...(inputs.dtBias && { ddt_bias: ofBias }) };
}

/** Gradients of Mamba-2's own inputs by those of its recurrence, as a kernel makes and stores them; dv is that of x. */
export function chainGradients(
  problem: RecurrentProblem,
  inputs: Mamba2Inputs,
  { dv, dg, ...others }: RecurrentResults<Float64Array>,
  { dout }: RecurrentGradientInputs,
  {
    rounding,
    change = {},
  }: { readonly rounding: RecurrentRounding; readonly change?: Mamba2Change | undefined },
): RecurrentResults<Float64Array> {
  // Without these, or behind another way to write or to add the bias, nothing is known of the others.
  const isOther = change.value !== undefined || change.addsBiasBehind === true;
  if (dv === undefined || dg === undefined || isOther) return others;
  const steps = kernelSteps(inputs, rounding, change);
  const chain = { problem, inputs, rounding, change, steps, dout: decodeTensor(dout) };
  const { dx, dD } = valueGradients(chain, dv);
  const made = { dv: dx, ...(dD && { dD }), ...gateGradients(chain, dv, dg) };
  for (const [name, values] of Object.entries(made))
    rounding.output(name, values, 0, values.length);
  return { ...others, ...made };
}
