import { decodeTensor, type Tensor } from '../../../../src/formats/index.js';
import { recurrentShape, type RecurrentProblem } from '../../../../src/problem/index.js';
import type { LogArithmetic } from '../reference-gates.js';

/** Mamba-2 by its definition, token by token and element by element: it shares nothing with the oracle. States are [state dimension, head dimension]. */
export function referenceMamba2<T>(
  problem: RecurrentProblem,
  arena: LogArithmetic<T>,
): {
  readonly out: readonly T[];
  readonly finalState: readonly T[];
  /** The numbers of the inputs, by the names of their gradients. */
  readonly inputs: Readonly<Record<string, readonly T[] | undefined>>;
} {
  const { tokens, batch, keyHeads, valueHeads, keyDim, valueDim, sequences } =
    recurrentShape(problem);
  const { dt, a, d, z, dtBias, dtSoftplus, dtLimit } = problem.mamba2!;
  const { of, add, multiply, divide, subtract, exp, log } = {
    of: (x: number) => arena.of(x),
    add: (x: T, y: T) => arena.add(x, y),
    multiply: (x: T, y: T) => arena.multiply(x, y),
    divide: (x: T, y: T) => arena.divide(x, y),
    subtract: (x: T, y: T) => arena.subtract(x, y),
    exp: (x: T) => arena.exp(x),
    log: (x: T) => arena.log(x),
  };
  const realsOf = (tensor: Tensor | undefined) => tensor && Array.from(decodeTensor(tensor), of);
  const [rates, skip, gates, bias] = [a, d, z, dtBias].map(realsOf);
  const [c, b, x, given] = [problem.q, problem.k, problem.v, dt].map((one) => realsOf(one)!);
  const initial = realsOf(problem.initialState);
  const [zero, one] = [of(0), of(1)];
  const [givenNumbers, biasNumbers] = [decodeTensor(dt), dtBias && decodeTensor(dtBias)];

  // Whether the sum is beyond 20 is decided in fp64: where the test draws no sums that close.
  const stepOf = (row: number, head: number): T => {
    const sum = bias ? add(given[row], bias[head]) : given[row];
    const near = givenNumbers[row] + (biasNumbers?.[head] ?? 0);
    const step = dtSoftplus && near <= 20 ? log(add(one, exp(sum))) : sum;
    const size = dtSoftplus ? Math.log1p(Math.exp(Math.min(near, 40))) : near;
    if (size < dtLimit[0]) return of(dtLimit[0]);
    return size > dtLimit[1] ? of(dtLimit[1]) : step;
  };

  const out = new Array<T>(batch * tokens * valueHeads * valueDim);
  const finalState: T[] = [];
  sequences.forEach(({ first, end }, sequence) => {
    for (let head = 0; head < valueHeads; head++) {
      const group = Math.floor((head * keyHeads) / valueHeads);
      const at = (sequence * valueHeads + head) * keyDim * valueDim;
      const state = Array.from({ length: keyDim * valueDim }, (_, i) =>
        initial ? initial[at + i] : zero,
      );
      for (let token = first; token < end; token++) {
        const row = token * valueHeads + head;
        const step = stepOf(row, head);
        const decay = exp(multiply(step, rates![head]));
        for (let p = 0; p < valueDim; p++) {
          const value = x[row * valueDim + p];
          const written = multiply(step, value);
          let y = zero;
          for (let n = 0; n < keyDim; n++) {
            const place = (token * keyHeads + group) * keyDim + n;
            const kept = multiply(decay, state[n * valueDim + p]);
            state[n * valueDim + p] = add(kept, multiply(b[place], written));
            y = add(y, multiply(c[place], state[n * valueDim + p]));
          }
          const isByHead = skip?.length === valueHeads;
          const factor = skip && (isByHead ? skip[head] : skip[head * valueDim + p]);
          if (factor !== undefined) y = add(y, multiply(factor, value));
          const gate = gates?.[row * valueDim + p];
          if (gate !== undefined)
            y = multiply(y, divide(gate, add(one, exp(subtract(zero, gate)))));
          out[row * valueDim + p] = y;
        }
      }
      finalState.push(...state);
    }
  });
  const inputs = {
    dq: c,
    dk: b,
    dv: x,
    ddt: given,
    dA: rates,
    dD: skip,
    ddt_bias: bias,
    dinitial_state: initial,
  };
  return { out, finalState, inputs };
}
