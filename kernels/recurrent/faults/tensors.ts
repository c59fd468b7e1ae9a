import { decodeTensor, type Tensor } from '../../../src/formats/index.js';
import {
  recurrentFamilies,
  recurrentShape,
  type RecurrentProblem,
} from '../../../src/problem/index.js';

/** The element at an index of a tensor whose elements are mapped, from its value. */
export type ElementMap = (value: number, index: number) => number;

/** A tensor of fp64 with other elements. */
export function mapped(tensor: Tensor, map: ElementMap): Tensor {
  const { shape } = tensor;
  return { format: 'fp64', shape, data: decodeTensor(tensor).map(map) };
}

/** A tensor of fp64 whose element at an index is that of `tensor` at another; 0 for null. */
export function gathered(tensor: Tensor, from: (index: number) => number | null): Tensor {
  const values = decodeTensor(tensor);
  return mapped(tensor, (_, i) => {
    const at = from(i);
    return at === null ? 0 : values[at];
  });
}

/** The elements of one index of the first `axes` axes. */
const sizeBehind = ({ shape }: Tensor, axes: number) =>
  shape.slice(axes).reduce((a, b) => a * b, 1);

/** The token, counted over [batch, tokens], of an element of a tensor that has tokens. */
export const tokenOf = (tensor: Tensor, index: number) => Math.floor(index / sizeBehind(tensor, 2));

/** The elements of each token from the one `by` tokens later of its sequence, 0 beyond its ends. */
export function ofLaterToken(problem: RecurrentProblem, tensor: Tensor, by: number): Tensor {
  const sequenceOf = sequencesByToken(problem);
  const size = sizeBehind(tensor, 2);
  return gathered(tensor, (i) => {
    const token = tokenOf(tensor, i);
    const { first, end } = sequenceOf[token];
    return token + by < first || token + by >= end ? null : i + by * size;
  });
}

/** The elements of each index of an axis from the next one, of the last from the first. */
export function ofNext(tensor: Tensor, axis: number): Tensor {
  const size = sizeBehind(tensor, axis + 1);
  const count = tensor.shape[axis];
  return gathered(tensor, (i) => {
    const at = Math.floor(i / size) % count;
    return i + (((at + 1) % count) - at) * size;
  });
}

/** The sequence of each token, counted over [batch, tokens]. */
export function sequencesByToken(
  problem: RecurrentProblem,
): readonly { readonly first: number; readonly end: number }[] {
  return recurrentShape(problem).sequences.flatMap((sequence) =>
    Array.from({ length: sequence.end - sequence.first }, () => sequence),
  );
}

/** Whether the problem has decays, and gates of its own. */
export const hasDecay = ({ problem }: { readonly problem: RecurrentProblem }) =>
  recurrentFamilies[problem.family].decay !== 'none';

/** Whether its writes are delta writes. */
export const isDelta = ({ problem }: { readonly problem: RecurrentProblem }) =>
  recurrentFamilies[problem.family].write === 'delta';

/** The gates of a problem that has decays; those of retention as a tensor. */
export function gatesOf(problem: RecurrentProblem): Tensor {
  if (problem.g) return problem.g;
  const { batch, tokens, valueHeads } = recurrentShape(problem);
  const count = batch * tokens * valueHeads;
  const data = Float64Array.from({ length: count }, (_, i) =>
    Math.log1p(-(2 ** (-5 - (i % valueHeads)))),
  );
  return { format: 'fp64', shape: [batch, tokens, valueHeads], data };
}

/** The problem with other gates; retention becomes simple-gla. */
export function withGates(problem: RecurrentProblem, g: Tensor): RecurrentProblem {
  return { ...problem, family: problem.family === 'retention' ? 'simple-gla' : problem.family, g };
}

/** The problem with its gates mapped. */
export const withMappedGates = (problem: RecurrentProblem, map: ElementMap): RecurrentProblem =>
  withGates(problem, mapped(gatesOf(problem), map));

/** The tokens of a sequence that begin its chunks, the first of all apart, as a set of tokens. */
export function chunkStarts(problem: RecurrentProblem, chunk: number): ReadonlySet<number> {
  const starts = new Set<number>();
  for (const { first, end } of recurrentShape(problem).sequences)
    for (let token = first + chunk; token < end; token += chunk) starts.add(token);
  return starts;
}

/** The tokens of ragged tails: those behind the last whole chunk of each sequence. */
export function raggedTails(problem: RecurrentProblem, chunk: number): ReadonlySet<number> {
  const tails = new Set<number>();
  for (const { first, end } of recurrentShape(problem).sequences)
    for (let token = end - ((end - first) % chunk); token < end; token++) tails.add(token);
  return tails;
}

/** The problem as if some tokens were not: nothing is decayed, read or written there. */
export function withoutTokens(
  problem: RecurrentProblem,
  tokens: ReadonlySet<number>,
): RecurrentProblem {
  const cut = (tensor: Tensor) =>
    mapped(tensor, (x, i) => (tokens.has(tokenOf(tensor, i)) ? 0 : x));
  const { q, k, v } = problem;
  const rest = { ...problem, q: cut(q), k: cut(k), v: cut(v) };
  return hasDecay({ problem }) ? withGates(rest, cut(gatesOf(problem))) : rest;
}
