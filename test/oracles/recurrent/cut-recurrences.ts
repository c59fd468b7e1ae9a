import { decodeTensor, encodeFromFloat64, formats } from '../../../src/formats/index.js';
import type { RecurrentProblem, Tensor } from '../../../src/problem/index.js';

/** Elements from `first` to `end` of an axis of a tensor. */
export function part(tensor: Tensor, axis: number, first: number, end: number): Tensor {
  const { format, shape } = tensor;
  const inner = shape.slice(axis + 1).reduce((a, b) => a * b, 1);
  const outer = shape.slice(0, axis).reduce((a, b) => a * b, 1);
  const all = decodeTensor(tensor);
  const kept: number[] = [];
  for (let o = 0; o < outer; o++) {
    const at = o * shape[axis] * inner;
    kept.push(...all.subarray(at + first * inner, at + end * inner));
  }
  const data = encodeFromFloat64(formats[format], Float64Array.from(kept));
  return { format, shape: shape.with(axis, end - first), data };
}

/** The tokens from `first` to `end` of a problem without packed sequences, from a state. */
export function tokensOf(
  problem: RecurrentProblem,
  first: number,
  end: number,
  initialState: Tensor | undefined,
): RecurrentProblem {
  const { q, k, v, g, beta, family, normalisation } = problem;
  const cut = (tensor: Tensor) => part(tensor, 1, first, end);
  return {
    family,
    q: cut(q),
    k: cut(k),
    v: cut(v),
    ...(g && { g: cut(g) }),
    ...(beta && { beta: cut(beta) }),
    ...(normalisation && { normalisation }),
    ...(initialState && { initialState }),
  };
}
