import { recurrentFamilies, type Decay, type RecurrentProblem } from '../../../problem/index.js';
import type { RecurrentArithmetic } from '../../../../kernels/index.js';
import { compose, conversion, type Conversion, type Roundings } from './roundings.js';

/**
 * What an exponential and its argument's product with log2 e err by, in units of an operation: ex2.approx is within 2.4 of them, its
 * argument is the product of rounded numbers; a kernel that multiplies two exponentials has twice that.
 */
export const exponentialUnits = 16;

/** What the logarithm of a fixed decay errs by where a unit computes it: lg2.approx is within 2^-22. */
const fixedGateError = 2 ** -22;

/** The relative errors of what a kernel makes of its inputs. */
export interface InputErrors {
  readonly decay: Decay;
  /** Of normalised queries and keys; 0 without normalisation. */
  readonly normalised: number;
  /** Of queries and keys as operands of products: where tensor cores read fewer bits than they have, too. */
  readonly query: number;
  readonly key: number;
  /** What additive writes round values to. */
  readonly value: Conversion;
  /** Value dimensions whose shares of dQ, dK and dβ are stored before they are added, and what storing one errs by. */
  readonly valueBlock: number;
  readonly share: number;
  /** Of a decay from a sum of `tokens` gates whose magnitudes add to `sum`, and which err by `given` together before; 0 where nothing decays. */
  readonly ofDecay: (sum: number, tokens: number, given: number) => number;
}

/**
 * The relative error of e^x for x = G_i − G_j: each of the sums has `tokens` additions in any order, and the difference and its product with log2 e round
 * once each.
 */
function decayError(decay: Decay, roundings: Roundings): InputErrors['ofDecay'] {
  if (decay === 'none') return () => 0;
  const { operation, of } = roundings;
  const gate = Math.max(of.gates.unit, operation);
  const constant = exponentialUnits * operation;
  return (sum, tokens, given) => {
    const fixed = decay === 'fixed-by-head' ? tokens * fixedGateError : 0;
    // e⁰ is 1.
    if (sum === 0 && fixed === 0) return 0;
    const exponent = (2 * tokens + 4) * gate * (sum + given) + fixed + given;
    return compose(Math.expm1(exponent), constant, of.decay.unit);
  };
}

/** The errors of a problem's inputs in an arithmetic. */
export function inputErrors(
  problem: RecurrentProblem,
  { form, formats, valueBlock }: RecurrentArithmetic,
  roundings: Roundings,
): InputErrors {
  const [, , , keyDim] = problem.q.shape;
  const { operation, of } = roundings;
  // Half the error of Σx² + ε, then a root, a quotient, a product.
  const normalised = problem.normalisation
    ? compose((keyDim / 2 + 8) * operation, of.normalised.unit)
    : 0;
  const raw = (format: Parameters<typeof conversion>[0]) =>
    form === 'recurrent' ? 0 : conversion(formats.operand, format).unit;
  const ofVector = (format: Parameters<typeof conversion>[0]) =>
    compose(normalised, raw(problem.normalisation ? formats.normalised : format));
  const [, , , valueDim] = problem.v.shape;
  const stored = [problem.q, problem.k, problem.beta ?? problem.q].map(
    ({ format }) => conversion(format, formats.sum).unit,
  );
  const { decay } = recurrentFamilies[problem.family];
  return {
    decay,
    normalised,
    query: ofVector(problem.q.format),
    key: ofVector(problem.k.format),
    value: conversion(formats.write, problem.v.format),
    valueBlock: valueBlock ?? valueDim,
    share: (valueBlock ?? valueDim) < valueDim ? Math.max(...stored) : 0,
    ofDecay: decayError(decay, roundings),
  };
}
