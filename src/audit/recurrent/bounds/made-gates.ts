import { gateRecurrence } from '../../../../oracles/index.js';
import { decodeTensor, type Tensor } from '../../../formats/index.js';
import type { GateInputs, RecurrentProblem } from '../../../problem/index.js';
import { exponentialUnits } from './input-errors.js';
import { kernelSteps } from './mamba2/step-errors.js';
import type { Roundings } from './roundings.js';

/** What e^x errs by, relative to itself: its unit, and its argument's product with log2 e. */
const ofExponential = (x: number, unit: number): number =>
  Math.expm1(2 * unit * Math.abs(x)) + exponentialUnits * unit;

/** What a kernel's gates err by, relative to themselves: its softplus, its rates, and a rounding of their product and of each change of sign and of base. */
function gateErrors({ aLog, a, dtBias }: GateInputs, unit: number): Float64Array {
  const [, , heads, width = 1] = a.shape;
  const logarithms = decodeTensor(aLog);
  const { values, errors } = kernelSteps(
    {
      dt: { ...a, shape: [...a.shape.slice(0, 2), heads * width] },
      a: aLog,
      dtBias,
      dtSoftplus: true,
      dtLimit: [-Infinity, Infinity],
    },
    unit,
  );
  return errors.map((error, i) => {
    const share = values[i] === 0 ? 0 : error / values[i];
    const ofRate = ofExponential(logarithms[Math.floor(i / width) % heads], unit) + 4 * unit;
    return share + ofRate + share * ofRate;
  });
}

/** What a kernel's β err by, relative to themselves: of 1 / (1 + e^−b) the exponential by its part of the sum, and a few roundings. */
function strengthErrors(logits: Tensor, unit: number): Float64Array {
  return decodeTensor(logits).map((b) => {
    const part = 1 / (1 + Math.exp(b));
    return part * ofExponential(b, unit) * (1 + 2 ** -10) + 6 * unit;
  });
}

/**
 * The recurrence of a problem whose gates or write strengths a kernel makes, with what these err by before they are used. They are made in fp32, or in the format
 * that is declared for them.
 */
export function kernelGates(
  problem: RecurrentProblem,
  { operation, of }: Roundings,
): RecurrentProblem {
  const { gateInputs, strengthLogits } = problem;
  const unit = Math.max(operation, of['time-step'].unit);
  return {
    ...gateRecurrence(problem),
    ...(gateInputs && { gateErrors: gateErrors(gateInputs, unit) }),
    ...(strengthLogits && { strengthErrors: strengthErrors(strengthLogits, unit) }),
  };
}
