import { decodeTensor, type Tensor } from '../../../src/formats/index.js';
import type { RecurrentProblem } from '../../../src/problem/index.js';
import type { Arithmetic } from './reference-recurrence.js';

/** Arithmetic with logarithms. */
export type LogArithmetic<T> = Arithmetic<T> & { readonly log: (a: T) => T };

/** Gates and write strengths by their definition; whether a + dt_bias is beyond 20 is decided in fp64. */
export function referenceGates<T>(
  { gateInputs, strengthLogits }: RecurrentProblem,
  arena: LogArithmetic<T>,
): { readonly g: readonly T[] | undefined; readonly beta: readonly T[] | undefined } {
  const realsOf = (tensor: Tensor) => Array.from(decodeTensor(tensor), (x) => arena.of(x));
  const [zero, one] = [arena.of(0), arena.of(1)];
  const negated = (x: T) => arena.subtract(zero, x);
  const beta =
    strengthLogits &&
    realsOf(strengthLogits).map((b) => arena.divide(one, arena.add(one, arena.exp(negated(b)))));
  if (!gateInputs) return { g: undefined, beta };
  const { aLog, a, dtBias } = gateInputs;
  const [, , heads, width = 1] = a.shape;
  const [near, biasNear] = [decodeTensor(a), dtBias && decodeTensor(dtBias)];
  const [logarithms, bias] = [realsOf(aLog), dtBias && realsOf(dtBias)];
  const g = realsOf(a).map((x, i) => {
    const at = i % (heads * width);
    const sum = bias ? arena.add(x, bias[at]) : x;
    const isSoft = near[i] + (biasNear?.[at] ?? 0) <= 20;
    const step = isSoft ? arena.log(arena.add(one, arena.exp(sum))) : sum;
    return negated(arena.multiply(arena.exp(logarithms[Math.floor(at / width)]), step));
  });
  return { g, beta };
}
