import { recurrentOracle } from '../../../../../oracles/index.js';
import { decodeTensor } from '../../../../formats/index.js';
import type { Mamba2Inputs, RecurrentProblem } from '../../../../problem/index.js';
import { exponentialUnits } from '../input-errors.js';
import type { Roundings } from '../roundings.js';

/** What numbers that underflow add to an output, times what multiplies them: fp32 loses less than 2^-126 each, and z σ(z) less than 2^-118. */
const lost = 2 ** -116;

/** A Mamba-2 problem, and its recurrence in plain terms. */
export interface SteppedProblem {
  readonly problem: RecurrentProblem;
  readonly inputs: Mamba2Inputs;
  readonly plain: RecurrentProblem;
}

/** D x by element of x; zeros without a D. */
function skipsOf({ problem, inputs: { d } }: SteppedProblem): Float64Array {
  const [, , heads, valueDim] = problem.v.shape;
  if (!d) return new Float64Array(problem.v.data.length);
  const factors = decodeTensor(d);
  const isByHead = d.shape.length === 1;
  return decodeTensor(problem.v).map((x, i) => {
    const head = Math.floor(i / valueDim) % heads;
    return x * factors[isByHead ? head : head * valueDim + (i % valueDim)];
  });
}

/**
 * Makes bounds of Mamba-2's outputs of those of its recurrence's, in place: D x and the sum with it round once each, and z σ(z) errs by its exponential,
 * whose argument's product with log2 e rounds, and by a few roundings.
 */
export function addOutputErrors(
  errors: Float64Array,
  stepped: SteppedProblem,
  { operation }: Roundings,
): void {
  const { d, z } = stepped.inputs;
  if (!d && !z) return;
  const { values } = recurrentOracle(stepped.plain).out;
  const skips = skipsOf(stepped);
  const gates = z && decodeTensor(z);
  for (let i = 0; i < errors.length; i++) {
    const sum = Math.abs(values[i] + skips[i]);
    let error = errors[i];
    if (d) error += operation * (Math.abs(skips[i]) + sum + error) + lost;
    if (gates) {
      const size = Math.abs(gates[i]);
      const factor = size / (1 + Math.exp(-gates[i]));
      const share = Math.expm1(2 * operation * size) + (exponentialUnits + 8) * operation;
      error = factor * (error + share * (sum + error)) + lost * (1 + sum + error);
    }
    errors[i] = error;
  }
}
