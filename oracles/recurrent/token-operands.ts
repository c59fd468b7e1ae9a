import { decodeTensor } from '../../src/formats/index.js';
import type { RecurrentProblem, RecurrentShape } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { decayReader, type TokenDecay } from './decays.js';
import { keyVector, readKeyVector, type KeyVector } from './key-vector.js';

/** What one token does to the state of a value head. */
export interface TokenOperands {
  readonly query: KeyVector;
  readonly key: KeyVector;
  /** By value dimension. */
  readonly value: Float64Array;
  /** What the value of an additive write errs by, relative to itself. */
  readonly valueError: number;
  readonly decay: TokenDecay;
  /** β; null for an additive write. */
  readonly strength: number | null;
  /** What β errs by, relative to itself. */
  readonly strengthError: number;
}

/** Reads a token, counted over [batch, tokens], for a value head. */
export type TokenReader = (token: number, head: number) => TokenOperands;

/** Refuses infinities and NaNs. @throws RequestError that names the tensor */
export function checkFinite(values: Float64Array, name: string): void {
  if (!values.every(Number.isFinite))
    throw new RequestError(`an element of ${name} is not finite; give finite numbers`);
}

/**
 * A reader of the problem's tokens, with keys padded by zeros to `paddedDim`; what it returns is good until it is called again. It throws
 * a RequestError for inputs that are not finite, gates of −∞ apart.
 */
export function tokenReader(
  problem: RecurrentProblem,
  shape: RecurrentShape,
  paddedDim: number,
): TokenReader {
  const { q, k, v, beta, normalisation, stepErrors, strengthErrors } = problem;
  const { keyHeads, valueHeads, valueDim } = shape;
  const [query, key] = [keyVector(paddedDim), keyVector(paddedDim)];
  const value = new Float64Array(valueDim);
  const strengthOf = new Float64Array(1);
  const decayOf = decayReader(problem, shape, paddedDim);
  const epsilon = normalisation?.epsilon;
  return (token, head) => {
    const keyHead = Math.floor(head / (valueHeads / keyHeads));
    const at = token * valueHeads + head;
    readKeyVector(q, token * keyHeads + keyHead, epsilon, query);
    readKeyVector(k, token * keyHeads + keyHead, epsilon, key);
    decodeTensor(v, at * valueDim, (at + 1) * valueDim, value);
    checkFinite(value, 'v');
    const rest = {
      decay: decayOf(token, head),
      valueError: stepErrors?.[at] ?? 0,
      strengthError: strengthErrors?.[at] ?? 0,
    };
    if (!beta) return { query, key, value, ...rest, strength: null };
    decodeTensor(beta, at, at + 1, strengthOf);
    checkFinite(strengthOf, 'beta');
    return { query, key, value, ...rest, strength: strengthOf[0] };
  };
}
