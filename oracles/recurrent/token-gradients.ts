import {
  recurrentFamilies,
  recurrentScale,
  type RecurrentLaw,
  type RecurrentProblem,
  type RecurrentShape,
} from '../../src/problem/index.js';
import type { ScaledReferenceQuantity } from '../attention/attention.js';
import type { UncertainVector } from './adjoint-radius.js';
import { gamma, roundingsOfProblem, zeroErrors, type Roundings } from './radius.js';
import { roundingsOf } from './state-loops.js';
import { paddedKeyDim, zeroState, type State } from './state.js';

/** The shares of one token and value head in the gradients, by name; the problem has the others not. */
export interface TokenGradients {
  readonly dq: ScaledReferenceQuantity;
  readonly dk: ScaledReferenceQuantity;
  readonly dv: ScaledReferenceQuantity;
  readonly dg?: ScaledReferenceQuantity;
  readonly dbeta?: ScaledReferenceQuantity;
}

/** Exact gradients of a recurrence by the names of their tensors, in the layouts of `recurrentQuantityShape`; the problem has the others not. */
export interface RecurrentGradients extends TokenGradients {
  readonly dinitial_state?: ScaledReferenceQuantity;
  /** Of Mamba-2, whose dv is that of x. */
  readonly ddt?: ScaledReferenceQuantity;
  readonly dA?: ScaledReferenceQuantity;
  readonly dD?: ScaledReferenceQuantity;
  readonly ddt_bias?: ScaledReferenceQuantity;
}

/** What the backward pass of a value head works with, token by token. */
export interface Backward {
  readonly shares: TokenGradients;
  /** G, the gradient of the state. */
  readonly gradient: State;
  readonly scale: number;
  readonly roundings: Roundings;
  /** What a term of a sum over the value dimension, and then over the key dimension, errs by at most. */
  readonly relative: number;
  readonly decays: boolean;
  /** Errors of the decayed state. */
  readonly decayed: State['errors'];
  /** By value dimension: scale · dO, z = v − Sᵀk, w, Gᵀk, and the gradient of what is read at the key. */
  readonly outgoing: UncertainVector;
  readonly missing: UncertainVector;
  readonly written: UncertainVector;
  readonly atKey: UncertainVector & State['errors'];
  readonly ofRead: UncertainVector;
  readonly squares: Float64Array;
  /** By key dimension, padded. */
  readonly ofQuery: Float64Array;
  readonly ofKey: Float64Array;
  readonly ofGate: Float64Array;
}

/** The workspace of a problem's backward pass. */
export function newBackward(problem: RecurrentProblem, shape: RecurrentShape): Backward {
  const { keyDim, valueDim } = shape;
  const { decay, write }: RecurrentLaw = recurrentFamilies[problem.family];
  const padded = paddedKeyDim(shape);
  const numbers = (length: number) => new Float64Array(length);
  const quantity = (length: number): ScaledReferenceQuantity => ({
    values: numbers(length),
    radius: numbers(length),
    magnitude: numbers(length),
  });
  const vector = (): UncertainVector => ({ values: numbers(valueDim), radius: numbers(valueDim) });
  return {
    shares: {
      dq: quantity(keyDim),
      dk: quantity(keyDim),
      dv: quantity(valueDim),
      ...(decay === 'by-head' && { dg: quantity(1) }),
      ...(decay === 'by-key-dimension' && { dg: quantity(keyDim) }),
      ...(write === 'delta' && { dbeta: quantity(1) }),
    },
    gradient: zeroState(shape),
    scale: recurrentScale(problem),
    roundings: roundingsOfProblem(roundingsOf(padded), problem.normalisation !== undefined),
    relative: gamma(valueDim + roundingsOf(padded)),
    decays: decay !== 'none',
    decayed: zeroErrors(valueDim),
    outgoing: vector(),
    missing: vector(),
    written: vector(),
    atKey: { ...vector(), norm: numbers(valueDim) },
    ofRead: vector(),
    squares: numbers(valueDim),
    ofQuery: numbers(padded),
    ofKey: numbers(padded),
    ofGate: numbers(padded),
  };
}
