import { decodeTensor } from '../../../src/formats/index.js';
import type {
  Mamba2Inputs,
  RecurrentGradientInputs,
  RecurrentProblem,
} from '../../../src/problem/index.js';
import type { ScaledReferenceQuantity } from '../../attention/attention.js';
import type { RecurrentGradients } from '../token-gradients.js';
import { ofHeads, slopeOf, unclamped } from './plain-problem.js';

const u = 2 ** -53;

/** A loss by underflow, and what radii are raised by for their own roundings and for products of two errors. */
const [tiny, slack] = [2 ** -970, 1 + 2 ** -38];

const zeros = (length: number): ScaledReferenceQuantity => ({
  values: new Float64Array(length),
  radius: new Float64Array(length),
  magnitude: new Float64Array(length),
});

/** Adds a term with its radius to an element: the sum rounds. */
function add(to: ScaledReferenceQuantity, at: number, value: number, radius: number): void {
  const sum = to.values[at] + value;
  const rounding = u * (Math.abs(value) + Math.abs(sum)) + tiny;
  to.values[at] = sum;
  to.radius[at] = (to.radius[at] + radius + rounding) * (1 + 2 ** -50);
  to.magnitude[at] += Math.abs(value);
}

/** What the chain works with. */
interface Chain {
  readonly problem: RecurrentProblem;
  readonly inputs: Mamba2Inputs;
  readonly plain: RecurrentProblem;
  readonly steps: Float64Array;
  readonly dv: ScaledReferenceQuantity;
  readonly dg: ScaledReferenceQuantity;
  readonly dout: Float64Array;
}

/** D of an element of x. */
function skipOf(d: Float64Array | undefined, heads: number, head: number, c: number, dim: number) {
  if (d === undefined) return 0;
  return d.length === heads ? d[head] : d[head * dim + c];
}

/** dx = Δ dv + D dy, and dD = Σ dy x. */
function valueGradients({ problem, inputs, plain, steps, dv, dout }: Chain) {
  const [, , heads, dim] = problem.v.shape;
  const x = decodeTensor(problem.v);
  const d = inputs.d && decodeTensor(inputs.d);
  const dx = zeros(x.length);
  const dD = d && zeros(d.length);
  const stepErrors = plain.stepErrors ?? new Float64Array(steps.length);
  for (let i = 0; i < x.length; i++) {
    const row = Math.floor(i / dim);
    const [head, c] = [row % heads, i % dim];
    const step = Math.abs(steps[row]);
    const share = stepErrors[row] * step;
    add(
      dx,
      i,
      steps[row] * dv.values[i],
      (step + share) * dv.radius[i] + share * Math.abs(dv.values[i]),
    );
    if (!d || !dD) continue;
    add(dx, i, skipOf(d, heads, head, c, dim) * dout[i], 0);
    add(dD, d.length === heads ? head : head * dim + c, dout[i] * x[i], 0);
  }
  return { dx, ...(dD && { dD }) };
}

/** dΔ = Σ dv x + A dg of a token and head. */
function stepGradient(chain: Chain, x: Float64Array, a: Float64Array, row: number) {
  const { problem, dv, dg } = chain;
  const [, , heads, dim] = problem.v.shape;
  const sum = zeros(1);
  for (let i = row * dim; i < (row + 1) * dim; i++)
    add(sum, 0, x[i] * dv.values[i], Math.abs(x[i]) * dv.radius[i]);
  const rate = a[row % heads];
  add(sum, 0, rate * dg.values[row], Math.abs(rate) * dg.radius[row]);
  return { value: sum.values[0], radius: sum.radius[0], magnitude: sum.magnitude[0] };
}

/** ddt = dΔ dΔ/d(dt), 0 where Δ is clamped; dA = Σ dg Δ, and ddt_bias = Σ ddt. */
function gateGradients(chain: Chain) {
  const { problem, inputs, plain, steps, dg } = chain;
  const [, , heads] = problem.v.shape;
  const { dt, dtBias, dtSoftplus, dtLimit } = inputs;
  const [least, most] = dtLimit;
  const x = decodeTensor(problem.v);
  const given = decodeTensor(dt);
  const [a, bias] = [ofHeads(inputs.a, heads, 'A'), ofHeads(dtBias, heads, 'dt_bias')];
  const [ddt, dA, ofBias] = [zeros(given.length), zeros(heads), zeros(heads)];
  for (let row = 0; row < given.length; row++) {
    const head = row % heads;
    const share = (plain.stepErrors?.[row] ?? 0) * Math.abs(steps[row]);
    const ofGate = Math.abs(dg.values[row]);
    add(
      dA,
      head,
      dg.values[row] * steps[row],
      (Math.abs(steps[row]) + share) * dg.radius[row] + share * ofGate,
    );
    const step = unclamped(given[row], bias[head], dtSoftplus);
    const slope = slopeOf(given[row], bias[head], dtSoftplus);
    const whole = stepGradient(chain, x, a, row);
    const value = whole.value * slope.value;
    const isClamped = step.value < least || step.value > most;
    const margin = step.error * Math.abs(step.value) * 2;
    // Where fp64 cannot tell whether it is clamped, it may be either.
    const isOpen =
      step.error > 0 &&
      (Math.abs(step.value - least) <= margin || Math.abs(step.value - most) <= margin);
    const radius = whole.radius * slope.value + slope.error * Math.abs(value);
    const kept = isClamped ? 0 : value;
    const error = isOpen ? Math.abs(value) + radius : isClamped ? 0 : radius;
    add(ddt, row, kept, error * slack);
    ddt.magnitude[row] = whole.magnitude * slope.value;
    add(ofBias, head, ddt.values[row], ddt.radius[row]);
  }
  return { ddt, dA, ...(dtBias && { ddt_bias: ofBias }) };
}

/** Gradients of Mamba-2's own inputs by those of its recurrence: of x in the place of v, of dt, A, D and dt_bias in that of g. */
export function chainGradients(
  { problem, inputs, plain, steps }: Omit<Chain, 'dv' | 'dg' | 'dout'>,
  { dv, dg = zeros(dv.values.length), ...others }: RecurrentGradients,
  { dout }: RecurrentGradientInputs,
): RecurrentGradients {
  const chain = { problem, inputs, plain, steps, dv, dg, dout: decodeTensor(dout) };
  const { dx, ...ofSkip } = valueGradients(chain);
  return { ...others, dv: dx, ...ofSkip, ...gateGradients(chain) };
}
