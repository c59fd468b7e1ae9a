import { decodeTensor } from '../../src/formats/index.js';
import {
  recurrentFamilies,
  type RecurrentProblem,
  type RecurrentShape,
} from '../../src/problem/index.js';
import type { Tensor } from '../../src/formats/index.js';
import type { RecurrentRounding } from './arithmetic.js';
import { dot } from './matrix/matrices.js';

/** The inputs of neighbouring tokens for a value head, a row each. */
export interface TokenInputs {
  /** The first token, counted over [batch, tokens], and the number of tokens. */
  readonly first: number;
  readonly count: number;
  readonly head: number;
  /** Queries and keys as the law takes them: normalised if the problem says so. */
  readonly q: Float64Array;
  readonly k: Float64Array;
  readonly v: Float64Array;
  /** β; of additive writes 1. */
  readonly beta: Float64Array;
  /** Logarithms of decays, `gateCount` a token. */
  readonly gates: Float64Array;
  /** What normalisation multiplied each query and key by; 1 without it. */
  readonly queryFactors: Float64Array;
  readonly keyFactors: Float64Array;
}

/** Reads tokens of a value head; what it returns is good until the next call. */
export type InputReader = (first: number, count: number, head: number) => TokenInputs;

/** Gates of a token and head: 0 without decays, 1 by head, the key dimension by key dimension. */
export function gateCountOf(problem: RecurrentProblem, keyDim: number): number {
  const { decay } = recurrentFamilies[problem.family];
  if (decay === 'none') return 0;
  return decay === 'by-key-dimension' ? keyDim : 1;
}

/** The key head of a value head. */
export const keyHeadOf = ({ keyHeads, valueHeads }: RecurrentShape, head: number): number =>
  Math.floor(head / (valueHeads / keyHeads));

/** Divides rows by √(Σx² + epsilon), and writes what they are multiplied by. */
function normalise(
  rows: Float64Array,
  count: number,
  epsilon: number | undefined,
  factors: Float64Array,
  rounding: RecurrentRounding,
): void {
  factors.fill(1, 0, count);
  if (epsilon === undefined) return;
  const dim = rows.length / factors.length;
  for (let r = 0; r < count; r++)
    factors[r] = 1 / Math.sqrt(dot(rows, r * dim, rows, r * dim, dim) + epsilon);
  rounding.value('sum', factors, 0, count);
  for (let i = 0; i < count * dim; i++) rows[i] *= factors[Math.floor(i / dim)];
  rounding.value('normalised', rows, 0, count * dim);
}

/** A reader of up to `most` tokens at a time, which rounds what it normalises. */
export function inputReader(
  problem: RecurrentProblem,
  shape: RecurrentShape,
  most: number,
  rounding: RecurrentRounding,
): InputReader {
  const { keyHeads, valueHeads, keyDim, valueDim } = shape;
  const { q, k, v, g, beta, firstHead = 0 } = problem;
  const epsilon = problem.normalisation?.epsilon;
  const gateCount = gateCountOf(problem, keyDim);
  const numbers = (size: number) => new Float64Array(most * size);
  const rows = { q: numbers(keyDim), k: numbers(keyDim), v: numbers(valueDim) };
  const scalars = { beta: numbers(1).fill(1), queryFactors: numbers(1), keyFactors: numbers(1) };
  const gates = numbers(gateCount);

  /** Elements of one head, which lie apart in a tensor of all heads. */
  function gather(tensor: Tensor, to: Float64Array, dim: number, [from, heads, count]: number[]) {
    for (let t = 0; t < count; t++) {
      const at = (from + t * heads) * dim;
      decodeTensor(tensor, at, at + dim, to.subarray(t * dim, (t + 1) * dim));
    }
  }

  return (first, count, head) => {
    const ofKey = [first * keyHeads + keyHeadOf(shape, head), keyHeads, count];
    const ofValue = [first * valueHeads + head, valueHeads, count];
    gather(q, rows.q, keyDim, ofKey);
    gather(k, rows.k, keyDim, ofKey);
    gather(v, rows.v, valueDim, ofValue);
    if (beta) gather(beta, scalars.beta, 1, ofValue);
    if (g) gather(g, gates, gateCount, ofValue);
    else if (gateCount > 0) gates.fill(Math.log1p(-(2 ** (-5 - firstHead - head))), 0, count);
    normalise(rows.q, count, epsilon, scalars.queryFactors, rounding);
    normalise(rows.k, count, epsilon, scalars.keyFactors, rounding);
    return { first, count, head, ...rows, ...scalars, gates };
  };
}
