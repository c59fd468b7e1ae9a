import {
  recurrentFamilies,
  recurrentShape,
  type RecurrentProblem,
} from '../../../src/problem/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import type { Tensor } from '../../../src/problem/index.js';
import type { Arena, Real } from '../mpfr.js';

/** Outputs and final states in the oracle's order. */
export interface ReferenceRecurrence {
  readonly out: readonly Real[];
  readonly finalState: readonly Real[];
}

/** Linear attention by its definition, element by element in MPFR: an implementation that shares nothing with the oracle. */
export function referenceRecurrence(problem: RecurrentProblem, arena: Arena): ReferenceRecurrence {
  const { batch, tokens, keyHeads, valueHeads, keyDim, valueDim, sequences } =
    recurrentShape(problem);
  const law = recurrentFamilies[problem.family];
  const realsOf = (tensor: Tensor | undefined) =>
    tensor && Array.from(decodeTensor(tensor), (x) => arena.of(x));
  const [q, k, v] = [problem.q, problem.k, problem.v].map((x) => realsOf(x) ?? []);
  const [beta, initial] = [realsOf(problem.beta), realsOf(problem.initialState)];
  const gates = problem.g && decodeTensor(problem.g);
  const zero = arena.of(0);
  const scale = arena.of(problem.scale ?? 1 / Math.sqrt(keyDim));
  const dot = (a: readonly Real[], b: readonly Real[]) =>
    a.reduce((sum, x, i) => arena.add(sum, arena.multiply(x, b[i])), zero);

  const vectorOf = (x: readonly Real[], token: number, head: number) => {
    const keyHead = Math.floor((head * keyHeads) / valueHeads);
    const at = (token * keyHeads + keyHead) * keyDim;
    const elements = x.slice(at, at + keyDim);
    if (!problem.normalisation) return elements;
    const squares = arena.add(dot(elements, elements), arena.of(problem.normalisation.epsilon));
    return elements.map((element) => arena.divide(element, arena.squareRoot(squares)));
  };
  const decayOf = (token: number, head: number, row: number): Real | null => {
    if (law.decay === 'fixed-by-head')
      return arena.subtract(arena.of(1), arena.of(2 ** (-5 - head)));
    if (!gates) return null;
    const at = token * valueHeads + head;
    const gate = law.decay === 'by-head' ? gates[at] : gates[at * keyDim + row];
    return gate === -Infinity ? zero : arena.exp(arena.of(gate));
  };

  const out = new Array<Real>(batch * tokens * valueHeads * valueDim);
  const finalState: Real[] = [];
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
  return { out, finalState };
}
