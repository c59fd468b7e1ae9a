import { decodeTensor } from '../../src/formats/index.js';
import {
  recurrentShape,
  type GateInputs,
  type RecurrentProblem,
  type Tensor,
} from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { ofHeads, unclamped } from './mamba2/plain-problem.js';
import {
  exponential,
  exponentialError,
  largestExponent,
  sigmoid,
  type ErringNumber,
} from './mamba2/softplus.js';
import { checkFinite } from './token-operands.js';

const u = 2 ** -53;

/** A tensor of fp64 that stands for real numbers, and what its elements err by relative to themselves. */
interface ErringTensor {
  readonly tensor: Tensor;
  readonly errors: Float64Array;
}

/** A tensor of the shape of another, element by element. */
function made(shape: readonly number[], elementOf: (at: number) => ErringNumber): ErringTensor {
  const data = new Float64Array(shape.reduce((a, b) => a * b, 1));
  const errors = new Float64Array(data.length);
  for (let i = 0; i < data.length; i++) {
    const { value, error } = elementOf(i);
    data[i] = value;
    errors[i] = error;
  }
  return { tensor: { format: 'fp64', shape, data }, errors };
}

/** exp(A_log) of a head. @throws RequestError beyond the exponents of fp64 */
function rateOf(logarithm: number): ErringNumber {
  if (Math.abs(logarithm) > largestExponent)
    throw new RequestError(
      `an element of A_log is ${logarithm}; give numbers from −${largestExponent} to ${largestExponent}`,
    );
  return { value: exponential(logarithm), error: exponentialError(logarithm) };
}

/** g = −exp(A_log) · softplus(a + dt_bias): the errors of the factors and two u, for the product's rounding and that of errors. */
function gatesOf({ aLog, a, dtBias }: GateInputs): ErringTensor {
  const [, , heads, width = 1] = a.shape;
  const given = decodeTensor(a);
  checkFinite(given, 'a');
  const rates = Array.from(ofHeads(aLog, heads, 'A_log'), rateOf);
  const bias = ofHeads(dtBias, heads * width, 'dt_bias');
  return made(a.shape, (i) => {
    const rate = rates[Math.floor(i / width) % heads];
    const step = unclamped(given[i], bias[i % bias.length], true, 'a');
    return { value: -(rate.value * step.value), error: rate.error + step.error + 2 * u };
  });
}

/** β = σ(b). */
function strengthsOf(logits: Tensor): ErringTensor {
  const given = decodeTensor(logits);
  checkFinite(given, 'b');
  return made(logits.shape, (i) => {
    const b = given[i];
    if (b < -largestExponent)
      throw new RequestError(
        `an element of b is ${b}; give numbers of at least −${largestExponent}`,
      );
    // Beyond, 1 less than 2^-990.
    return sigmoid(Math.min(b, largestExponent));
  });
}

/** Gates of base 2 as natural logarithms: ln 2 and the product round. */
function naturalGates(gates: Tensor): ErringTensor {
  const given = decodeTensor(gates);
  return made(gates.shape, (i) => ({ value: given[i] * Math.LN2, error: 3 * u }));
}

/** Whether a problem has, in the place of gates or write strengths, what a kernel makes them of, or gates of base 2. */
export const makesGates = ({ gateInputs, gateBase, strengthLogits }: RecurrentProblem): boolean =>
  gateInputs !== undefined || gateBase === 2 || strengthLogits !== undefined;

/**
 * The recurrence of a problem whose gates or write strengths are made, or of base 2: with these as tensors of fp64, and what they err by.
 * @throws RequestError for tensors that do not fit together, and for numbers that are not finite or out of range
 */
export function gateRecurrence(problem: RecurrentProblem): RecurrentProblem {
  recurrentShape(problem);
  const { gateInputs, gateBase, strengthLogits, ...rest } = problem;
  const binary = gateBase === 2 && problem.g ? naturalGates(problem.g) : undefined;
  const gates = gateInputs ? gatesOf(gateInputs) : binary;
  const strengths = strengthLogits && strengthsOf(strengthLogits);
  return {
    ...rest,
    ...(gates && { g: gates.tensor, gateErrors: gates.errors }),
    ...(strengths && { beta: strengths.tensor, strengthErrors: strengths.errors }),
  };
}
