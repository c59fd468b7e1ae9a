import type { PremiseDeclaration } from '../../../kernels/index.js';
import type { Diagnosis } from '../diagnosis/index.js';
import type { PremiseName } from './premise-words.js';

/**
 * The names of the causes that are the same as a premise: a hint beside one of these tells how a kernel that does so by
 * design declares it. Any other cause that explains the rows is a fault, which no premise excuses.
 */
const ownCauses: Readonly<Partial<Record<PremiseName, readonly string[]>>> = {
  scores: ['scores-narrow', 'product-narrow', 'exponent-narrow', 'scaled-query-narrow'],
  scale: ['scaled-query-narrow', 'scores-narrow', 'product-narrow'],
  weights: ['weights-narrow'],
  weightScale: ['weights-narrow', 'weights-underflow'],
  qkAccumulator: ['product-narrow', 'accumulator-narrow', 'scores-narrow'],
  pvAccumulator: ['accumulator-narrow', 'product-narrow', 'partials-narrow'],
  partials: ['partials-narrow', 'accumulator-narrow'],
  // Coefficients of a polynomial are fitted: they follow roundings of weights some of the way.
  rowSum: ['row-sum-narrow', 'exp2-coefficient'],
  factors: ['rescale-narrow', 'exp2-coefficient'],
  outputRounding: ['output-truncated', 'output-rounded-one-way', 'output-rounded-twice'],
};

/** The causes that are the same as some premise. */
const declarable = new Set(Object.values(ownCauses).flat());

/**
 * Whether a cause that was found leaves a premise to be named: none was; or it, or one that explains the rows as well, says
 * the same, and none of these is a fault that no premise declares.
 */
export function isOwnCause(cause: Diagnosis | null, declared: PremiseDeclaration): boolean {
  if (cause === null || cause.id === 'unexplained') return true;
  const own = Object.keys(declared).flatMap((name) => ownCauses[name as PremiseName] ?? []);
  const ids = [cause.id, ...cause.equivalents];
  return ids.every((id) => declarable.has(id)) && ids.some((id) => own.includes(id));
}
