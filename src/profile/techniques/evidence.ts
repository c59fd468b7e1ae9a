import { specialFunctionEvidence, type MufuArchitecture } from '../../hardware/index.js';
import type { CandidateName } from '../candidates.js';
import { references, type ReferenceName } from '../references.js';

/** How it is known that a function is what a GPU computes. */
export interface FunctionEvidence {
  readonly name: CandidateName;
  readonly evidence: string;
}

/** What the exact values are, and how exact. */
export interface ReferenceReport {
  readonly formula: string;
  /** A bound on the relative error of the exact values as fp64 has them. */
  readonly relativeError: number;
  /**
   * A bound on what a relative error below 1/8, and so the largest of such, may be off by. A mean may
   * be off by 2^-40 of the mean magnitude more: in a block of 2^20 inputs each error goes through fewer
   * than 2^12 additions in fp64; the blocks' sums are added without rounding.
   */
  readonly certainty: number;
  /** The same of an absolute error; null where none is reported. */
  readonly absoluteCertainty: number | null;
}

/** How it is known that a function is what a GPU computes. */
export function evidenceOf(
  name: CandidateName,
  architecture: MufuArchitecture = 'sm_90',
): FunctionEvidence {
  if (name === 'P') return { name, evidence: 'every fp32 number p, rounded to nearest even' };
  const isPolynomial = name.startsWith('degree');
  return {
    name,
    evidence: isPolynomial
      ? "FlashAttention-4's operations in order; sm_90 silicon, every input"
      : specialFunctionEvidence[architecture].label,
  };
}

/**
 * What is known of an exact function's values. A relative error below 1/8 may be off by the values'
 * relative error and, for the rounding of the difference's quotient, an eighth of 3·2^-53.
 * @param largest a bound on the exact values' magnitude; for absolute errors
 */
export function referenceReport(
  name: ReferenceName,
  largest: number | null = null,
): ReferenceReport {
  const { formula, relativeError } = references[name];
  const certainty = 2 ** Math.ceil(Math.log2(relativeError + 2 ** -54));
  return {
    formula,
    relativeError,
    certainty,
    absoluteCertainty: largest === null ? null : largest * certainty,
  };
}
