import { createExp2PolynomialArray, type PolynomialDegree } from '../../kernels/index.js';
import {
  createSpecialFunctionArrays,
  type Float32SpecialFunctionName,
  type MufuArchitecture,
  specialFunctionEvidence,
} from '../hardware/index.js';
import type { ArrayFunction } from '../simd/index.js';
import {
  createExp2Array,
  createLog2Array,
  exp2ArrayError,
  exp2Rounded,
  type Float64ArrayFunction,
  log2ArrayError,
  log2Rounded,
  reciprocalRounded,
  reciprocalSquareRootError,
  reciprocalSquareRootRounded,
} from '../../oracles/index.js';
import { formats, type NumberFormat, round, unitRoundoff } from '../formats/index.js';

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

/** The exact functions that results are compared with. */
export type ReferenceName = 'exp2' | 'log2' | 'reciprocal' | 'reciprocal square root' | 'identity';

/** An exact function: an fp64 approximation with a proven error, and the correctly rounded values. */
export interface Reference {
  /** A formula of x. */
  readonly formula: string;
  /** A bound on the relative error of the fp64 values. */
  readonly relativeError: number;
  /** Creates a function for the fp64 values; one for each thread. */
  readonly create: () => Float64ArrayFunction;
  /** The exact value rounded once to nearest, ties to even; beyond the range to infinity or NaN. */
  readonly rounded: (x: number, format: NumberFormat) => number;
}

const elementwise =
  (evaluate: (x: number) => number): (() => Float64ArrayFunction) =>
  () =>
  (inputs, values, count) => {
    for (let i = 0; i < count; i++) values[i] = evaluate(inputs[i]);
  };

/** The exact functions; none of them uses an instruction model. */
export const references: Readonly<Record<ReferenceName, Reference>> = {
  exp2: {
    formula: '2^x',
    relativeError: exp2ArrayError,
    create: createExp2Array,
    rounded: exp2Rounded,
  },
  log2: {
    formula: 'log2 x',
    relativeError: log2ArrayError,
    create: createLog2Array,
    rounded: log2Rounded,
  },
  reciprocal: {
    formula: '1/x',
    relativeError: unitRoundoff(formats.fp64),
    create: elementwise((x) => 1 / x),
    rounded: reciprocalRounded,
  },
  'reciprocal square root': {
    formula: '1/√x',
    relativeError: reciprocalSquareRootError,
    create: elementwise((x) => 1 / Math.sqrt(x)),
    rounded: reciprocalSquareRootRounded,
  },
  identity: {
    formula: 'the number itself',
    relativeError: 0,
    create: elementwise((x) => x),
    rounded: (x, format) => round(format, x),
  },
};

/** The evidence that a GPU computes exactly this function. */
export interface FunctionEvidence {
  readonly name: CandidateName;
  readonly evidence: string;
}

/** The formula of the exact values, and their accuracy. */
export interface ReferenceReport {
  readonly formula: string;
  /** A bound on the relative error of the exact values as fp64 has them. */
  readonly relativeError: number;
  /**
   * A bound on the uncertainty of a relative error below 1/8, and so of the largest of these. A mean
   * may be off by another 2^-40 of the mean magnitude: in a block of 2^20 inputs each error goes
   * through fewer than 2^12 additions in fp64; the blocks' sums are added without rounding.
   */
  readonly certainty: number;
  /** The same bound for an absolute error; null where none is reported. */
  readonly absoluteCertainty: number | null;
}

/** The evidence that a GPU computes exactly this function. */
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
 * The formula and the accuracy of an exact function's values. A relative error below 1/8 may be off
 * by the values' relative error and, for the rounding of the difference's quotient, an eighth of
 * 3·2^-53.
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
