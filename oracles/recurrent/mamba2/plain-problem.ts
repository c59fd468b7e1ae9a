import { sumError } from '../../../src/arith/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import {
  recurrentShape,
  softplusThreshold,
  type Mamba2Inputs,
  type RecurrentProblem,
} from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import { checkFinite } from '../token-operands.js';
import {
  largestExponent,
  sigmoid,
  softplus,
  softplusError,
  type ErringNumber,
} from './softplus.js';

const u = 2 ** -53;

/** dΔ/d(dt) before it is clamped: σ of dt + dt_bias of a softplus, and 1 beyond the threshold or without. */
export function slopeOf(dt: number, bias: number, isSoftplus: boolean): ErringNumber {
  if (!isSoftplus || isBeyondThreshold(dt, bias)) return { value: 1, error: 0 };
  return sigmoid(dt + bias);
}

/** Whether dt + dt_bias is beyond the threshold: their sum is rounded, so that one beyond may have become it. */
function isBeyondThreshold(dt: number, bias: number): boolean {
  const x = dt + bias;
  return x > softplusThreshold || (x === softplusThreshold && sumError(dt, bias, x) > 0);
}

/**
 * Δ of a token and head before it is clamped.
 * @param name of the tensor that dt is of
 * @throws RequestError for a softplus of numbers beyond the exponents of fp64
 */
export function unclamped(
  dt: number,
  bias: number,
  isSoftplus: boolean,
  name = 'dt',
): ErringNumber {
  const x = dt + bias;
  if (!isSoftplus) return { value: x, error: bias === 0 ? 0 : u };
  if (isBeyondThreshold(dt, bias)) return { value: x, error: u };
  if (x < -largestExponent)
    throw new RequestError(
      `${name} + dt_bias is ${x}; give numbers of at least −${largestExponent} to a softplus`,
    );
  return { value: softplus(x), error: softplusError(x) };
}

/** The values of a tensor of one number a head; zeros for none. @throws RequestError for numbers that are not finite */
export function ofHeads(tensor: Mamba2Inputs['dtBias'], heads: number, name: string): Float64Array {
  if (tensor === undefined) return new Float64Array(heads);
  const values = decodeTensor(tensor);
  checkFinite(values, name);
  return values;
}

/** Δ of all tokens and heads with relative errors, [batch, tokens, heads]. */
export interface Steps {
  readonly values: Float64Array;
  readonly errors: Float64Array;
}

/** Δ of a Mamba-2 problem. @throws RequestError for numbers that are not finite or out of range */
export function stepsOf({ dt, dtBias, dtSoftplus, dtLimit }: Mamba2Inputs): Steps {
  const [least, most] = dtLimit;
  const given = decodeTensor(dt);
  checkFinite(given, 'dt');
  const heads = dt.shape[2];
  const bias = ofHeads(dtBias, heads, 'dt_bias');
  const errors = new Float64Array(given.length);
  const values = given.map((one, i) => {
    const { value, error } = unclamped(one, bias[i % heads], dtSoftplus);
    errors[i] = error;
    return Math.min(Math.max(value, least), most);
  });
  return { values, errors };
}

/** The recurrence of a Mamba-2 problem, and its Δ, [batch, tokens, heads]. */
export interface Mamba2Recurrence {
  readonly plain: RecurrentProblem;
  readonly steps: Float64Array;
}

/**
 * The recurrence of a Mamba-2 problem in plain terms: simple-gla of the values Δ x and the gates Δ A, rounded to fp64, and what they err by. A clamped Δ errs by
 * no larger a share than what was clamped.
 * @throws RequestError for numbers that are not finite or out of range
 */
export function mamba2Recurrence(
  problem: RecurrentProblem,
  inputs: Mamba2Inputs,
): Mamba2Recurrence {
  const { q, k, v, initialState, cuSeqlens } = problem;
  const { valueHeads: heads, valueDim } = recurrentShape(problem);
  const { values: steps, errors } = stepsOf(inputs);
  const a = ofHeads(inputs.a, heads, 'A');
  const x = decodeTensor(v);
  checkFinite(x, 'x');
  const plain: RecurrentProblem = {
    family: 'simple-gla',
    scale: 1,
    q,
    k,
    v: {
      format: 'fp64',
      shape: v.shape,
      data: x.map((one, i) => one * steps[Math.floor(i / valueDim)]),
    },
    g: {
      format: 'fp64',
      shape: inputs.dt.shape,
      data: steps.map((step, i) => step * a[i % heads]),
    },
    stepErrors: errors.map((error) => error + 2 * u),
    ...(initialState && { initialState }),
    ...(cuSeqlens && { cuSeqlens }),
  };
  return { plain, steps };
}
