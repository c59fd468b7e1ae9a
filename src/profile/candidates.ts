import { createExp2PolynomialArray, type PolynomialDegree } from '../../kernels/index.js';
import { createSpecialFunctionArrays, type Float32SpecialFunctionName } from '../hardware/index.js';
import type { ArrayFunction } from '../simd/index.js';

/** A function of fp32 numbers that can be profiled: FlashAttention-4's polynomials by degree, the
 * special function unit's instructions by their PTX names, and the number itself, P. */
export type CandidateName = `degree ${PolynomialDegree}` | Float32SpecialFunctionName | 'P';

/** The degrees of FlashAttention-4's polynomials. */
export const polynomialDegrees: readonly PolynomialDegree[] = [1, 2, 3, 4, 5];

/** The profiled name of the polynomial of a degree. */
export function degreeName(degree: PolynomialDegree): CandidateName {
  return `degree ${degree}`;
}

/**
 * The functions by name, on arrays of fp32 bit patterns. Each has working memory of its own; make one
 * set per thread.
 */
export function createCandidates(): ReadonlyMap<CandidateName, ArrayFunction> {
  const candidates = new Map<CandidateName, ArrayFunction>();
  for (const degree of polynomialDegrees)
    candidates.set(degreeName(degree), createExp2PolynomialArray(degree));
  for (const [name, evaluate] of Object.entries(createSpecialFunctionArrays()))
    candidates.set(name as Float32SpecialFunctionName, evaluate);
  candidates.set('P', (inputs, results) => results.set(inputs));
  return candidates;
}
