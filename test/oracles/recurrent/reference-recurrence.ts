import {
  recurrentFamilies,
  recurrentShape,
  type RecurrentProblem,
} from '../../../src/problem/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import type { Tensor } from '../../../src/problem/index.js';
/** Arithmetic on numbers of some kind: MPFR's, or such as remember how they were made. */
export interface Arithmetic<T> {
  readonly of: (x: number) => T;
  readonly add: (a: T, b: T) => T;
  readonly subtract: (a: T, b: T) => T;
  readonly multiply: (a: T, b: T) => T;
  readonly divide: (a: T, b: T) => T;
  readonly squareRoot: (a: T) => T;
  readonly exp: (a: T) => T;
}

/** Outputs and final states in the oracle's order, and the inputs that they are made of in the order of their tensors. */
export interface ReferenceRecurrence<T> {
  readonly out: readonly T[];
  readonly finalState: readonly T[];
  readonly inputs: Readonly<Record<'q' | 'k' | 'v', readonly T[]>> &
    Readonly<Record<'g' | 'beta' | 'initialState', readonly T[] | undefined>>;
}

/**
 * Linear attention by its definition, element by element: an implementation that shares nothing with the oracle.
 * @param gateFactor multiplies gates; default 1
 * @param made gates and write strengths, where the problem has what they are made of
 */
export function referenceRecurrence<T>(
  problem: RecurrentProblem,
  arena: Arithmetic<T>,
  gateFactor?: T,
  made: Partial<Readonly<Record<'g' | 'beta', readonly T[] | undefined>>> = {},
): ReferenceRecurrence<T> {
  const { batch, tokens, keyHeads, valueHeads, keyDim, valueDim, sequences } =
    recurrentShape(problem);
  const law = recurrentFamilies[problem.family];
  const realsOf = (tensor: Tensor | undefined) =>
    tensor && Array.from(decodeTensor(tensor), (x) => arena.of(x));
  const [q, k, v] = [problem.q, problem.k, problem.v].map((x) => realsOf(x) ?? []);
  const [beta, initial] = [made.beta ?? realsOf(problem.beta), realsOf(problem.initialState)];
  const gates = made.g ?? realsOf(problem.g);
  const zero = arena.of(0);
  const scale = arena.of(problem.scale ?? 1 / Math.sqrt(keyDim));
  const dot = (a: readonly T[], b: readonly T[]) =>
    a.reduce((sum, x, i) => arena.add(sum, arena.multiply(x, b[i])), zero);

  const vectorOf = (x: readonly T[], token: number, head: number) => {
    const keyHead = Math.floor((head * keyHeads) / valueHeads);
    const at = (token * keyHeads + keyHead) * keyDim;
    const elements = x.slice(at, at + keyDim);
    if (!problem.normalisation) return elements;
    const squares = arena.add(dot(elements, elements), arena.of(problem.normalisation.epsilon));
    return elements.map((element) => arena.divide(element, arena.squareRoot(squares)));
  };
  const decayOf = (token: number, head: number, row: number): T | null => {
    if (law.decay === 'fixed-by-head')
      return arena.subtract(arena.of(1), arena.of(2 ** (-5 - head)));
    if (!gates) return null;
    const at = token * valueHeads + head;
    const gate = law.decay === 'by-head' ? gates[at] : gates[at * keyDim + row];
    return arena.exp(gateFactor === undefined ? gate : arena.multiply(gate, gateFactor));
  };

  const out = new Array<T>(batch * tokens * valueHeads * valueDim);
  const finalState: T[] = [];
  sequences.forEach(({ first, end }, sequence) => {
    for (let head = 0; head < valueHeads; head++) {
      const size = keyDim * valueDim;
      const at = (sequence * valueHeads + head) * size;
      // Columns of the state, one for each element of a value.
      const columns = Array.from({ length: valueDim }, (_, c) =>
        Array.from({ length: keyDim }, (_, i) => initial?.[at + i * valueDim + c] ?? zero),
      );
      for (let token = first; token < end; token++) {
        const [query, key] = [vectorOf(q, token, head), vectorOf(k, token, head)];
        const decays = key.map((_, i) => decayOf(token, head, i));
        columns.forEach((column, c) => {
          decays.forEach((d, i) => {
            if (d !== null) column[i] = arena.multiply(d, column[i]);
          });
          const row = token * valueHeads + head;
          const value = v[row * valueDim + c];
          const written = beta
            ? arena.multiply(beta[row], arena.subtract(value, dot(column, key)))
            : value;
          key.forEach((x, i) => (column[i] = arena.add(column[i], arena.multiply(x, written))));
          out[row * valueDim + c] = arena.multiply(scale, dot(column, query));
        });
      }
      for (let i = 0; i < keyDim; i++) for (const column of columns) finalState.push(column[i]);
    }
  });
  return { out, finalState, inputs: { q, k, v, g: gates, beta, initialState: initial } };
}
