import { decodeTensor, type Tensor } from '../../../formats/index.js';
import {
  recurrentFamilies,
  type Decay,
  type RecurrentProblem,
  type RecurrentShape,
} from '../../../problem/index.js';

/** The inputs of neighbouring tokens for one value head in fp64, a row each. */
export interface TokenBlock {
  /** The first token, counted over [batch, tokens], and the number of tokens. */
  readonly first: number;
  readonly count: number;
  /** Normalised where the problem says so. */
  readonly q: Float64Array;
  readonly k: Float64Array;
  readonly v: Float64Array;
  /** What normalisation multiplies queries and keys by; 1 without it. */
  readonly queryFactors: Float64Array;
  readonly keyFactors: Float64Array;
  /** β; 1 for additive writes. */
  readonly beta: Float64Array;
  /** The factor of each row of the state. */
  readonly decay: Float64Array;
  /** By key dimension: magnitudes of gates summed over the block up to each token; a gate of −∞ begins anew. */
  readonly gateSums: Float64Array;
  /** |g|, 0 for −∞. */
  readonly gates: Float64Array;
  /** By token: what a kernel's value and β err by before they are rounded, relative to themselves. */
  readonly valueErrors: Float64Array;
  readonly strengthErrors: Float64Array;
  /** By token: what a kernel's gates err by at most, and with them those up to it. */
  readonly gateErrors: Float64Array;
  readonly gateErrorSums: Float64Array;
}

/** Reads tokens of a value head into a block; what it returns is good until the next call. */
export type BlockReader = (first: number, count: number, head: number) => TokenBlock;

/** Divides rows by √(Σx² + epsilon), and writes what they are multiplied by. */
function normalise(rows: Float64Array, dim: number, epsilon: number, factors: Float64Array): void {
  for (let first = 0; first < rows.length; first += dim) {
    let sum = epsilon;
    for (let i = first; i < first + dim; i++) sum += rows[i] * rows[i];
    const factor = 1 / Math.sqrt(sum);
    factors[first / dim] = factor;
    for (let i = first; i < first + dim; i++) rows[i] *= factor;
  }
}

/** Rows of one head, which lie apart in a tensor of all heads. */
function gather(to: Float64Array, tensor: Tensor, dim: number, place: HeadPlace): void {
  const { first, count, heads, head } = place;
  for (let t = 0; t < count; t++) {
    const at = ((first + t) * heads + head) * dim;
    decodeTensor(tensor, at, at + dim, to.subarray(t * dim, (t + 1) * dim));
  }
}

interface HeadPlace {
  readonly first: number;
  readonly count: number;
  readonly heads: number;
  readonly head: number;
}

/** Fills decays, gates and their sums from gates of `given` elements a token. */
function setDecays(block: TokenBlock, raw: Float64Array, given: number, keyDim: number): void {
  const { count, decay, gates, gateSums } = block;
  for (let t = 0; t < count; t++)
    for (let i = 0; i < keyDim; i++) {
      const gate = raw[given === 1 ? t : t * keyDim + i];
      const at = t * keyDim + i;
      const forgets = gate === -Infinity;
      decay[at] = Math.exp(gate);
      gates[at] = forgets ? 0 : Math.abs(gate);
      gateSums[at] = forgets ? 0 : gates[at] + (t > 0 ? gateSums[at - keyDim] : 0);
    }
}

/** Sets what values, β and gates err by that stand for real numbers: of the gates of a token the largest. */
function setGivenErrors(
  block: TokenBlock,
  { stepErrors, gateErrors: ofGates, strengthErrors: ofStrengths }: RecurrentProblem,
  { keyDim, given }: { readonly keyDim: number; readonly given: number },
  { first, heads, head }: Omit<HeadPlace, 'count'>,
): void {
  const { count, gates, valueErrors, strengthErrors, gateErrors, gateErrorSums } = block;
  for (let t = 0; t < count; t++) {
    const row = (first + t) * heads + head;
    valueErrors[t] = stepErrors?.[row] ?? 0;
    strengthErrors[t] = ofStrengths?.[row] ?? 0;
    gateErrors[t] = 0;
    for (let i = 0; i < given; i++) {
      const share = ofGates?.[row * given + i] ?? valueErrors[t];
      gateErrors[t] = Math.max(gateErrors[t], share * gates[t * keyDim + i]);
    }
    gateErrorSums[t] = gateErrors[t] + (t > 0 ? gateErrorSums[t - 1] : 0);
  }
}

const givenGates = (rule: Decay, keyDim: number): number =>
  rule === 'by-key-dimension' ? keyDim : 1;

/** A reader of blocks of up to `most` tokens. */
export function blockReader(
  problem: RecurrentProblem,
  shape: RecurrentShape,
  most: number,
): BlockReader {
  const { keyHeads, valueHeads, keyDim, valueDim } = shape;
  const { q, k, v, g, beta, normalisation, firstHead = 0 } = problem;
  const isErring = Boolean(problem.stepErrors ?? problem.gateErrors ?? problem.strengthErrors);
  const rule = recurrentFamilies[problem.family].decay;
  const numbers = (dim: number) => new Float64Array(most * dim);
  const rows = {
    q: numbers(keyDim),
    k: numbers(keyDim),
    v: numbers(valueDim),
    queryFactors: numbers(1).fill(1),
    keyFactors: numbers(1).fill(1),
    beta: numbers(1).fill(1),
    decay: numbers(keyDim).fill(1),
    gates: numbers(keyDim),
    gateSums: numbers(keyDim),
    valueErrors: numbers(1),
    strengthErrors: numbers(1),
    gateErrors: numbers(1),
    gateErrorSums: numbers(1),
  };
  const given = givenGates(rule, keyDim);
  const raw = numbers(given);
  return (first, count, head) => {
    const block: TokenBlock = { first, count, ...rows };
    const keyHead = Math.floor(head / (valueHeads / keyHeads));
    const ofKeys = { first, count, heads: keyHeads, head: keyHead };
    const ofValues = { first, count, heads: valueHeads, head };
    gather(rows.q, q, keyDim, ofKeys);
    gather(rows.k, k, keyDim, ofKeys);
    gather(rows.v, v, valueDim, ofValues);
    if (beta) gather(rows.beta, beta, 1, ofValues);
    if (normalisation) {
      normalise(
        rows.q.subarray(0, count * keyDim),
        keyDim,
        normalisation.epsilon,
        rows.queryFactors,
      );
      normalise(rows.k.subarray(0, count * keyDim), keyDim, normalisation.epsilon, rows.keyFactors);
    }
    if (g) gather(raw, g, given, ofValues);
    else if (rule === 'fixed-by-head') raw.fill(Math.log1p(-(2 ** (-5 - firstHead - head))));
    if (rule !== 'none') setDecays(block, raw, given, keyDim);
    if (isErring) setGivenErrors(block, problem, { keyDim, given }, ofValues);
    return block;
  };
}
