import { attentionOracle, type AttentionReference } from '../../../oracles/index.js';
import type { Problem } from '../../problem/index.js';
import type { ForwardRun } from './forward-run.js';

/**
 * How far a forward is from exact attention, over the elements where both are finite; null where none
 * is.
 */
export interface ForwardErrors {
  /** max |error| / max |O|. */
  readonly largest: number | null;
  /** In units of each element's Σ p|v| / Σ p: the largest magnitude and the root mean square. */
  readonly largestRelative: number | null;
  readonly rootMeanSquare: number | null;
  /** Of the LSE, in natural units: the largest magnitude, and the mean with its sign. */
  readonly largestLse: number | null;
  readonly meanLse: number | null;
  /** Elements of O and LSEs that are not finite although the exact ones are. */
  readonly notFinite: number;
}

/** Far below the rounding of an output, so that the reference's radius shows in no error. */
const oracleAccuracy = {
  outputFormat: 'fp16',
  ulpFraction: 2 ** -10,
  magnitudeFraction: 2 ** -24,
} as const;

/** Exact attention, each element to within 2^-24 of Σ p|v| / Σ p or 2^-10 ulp of fp16. */
export function exactAttention(problem: Problem): AttentionReference {
  return attentionOracle(problem, { accuracy: oracleAccuracy });
}

/** The errors of a run against exact attention of the same problem. */
export function forwardErrors(
  { out, lse }: Pick<ForwardRun, 'out' | 'lse'>,
  reference: AttentionReference,
): ForwardErrors {
  const { out: exactOut, lse: exactLse } = reference.quantities;
  let [largest, largestOutput, largestRelative, squares, elements] = [0, 0, 0, 0, 0];
  let notFinite = 0;
  out.forEach((value, i) => {
    const exact = exactOut.values[i];
    if (!Number.isFinite(exact)) return;
    largestOutput = Math.max(largestOutput, Math.abs(exact));
    if (!Number.isFinite(value)) {
      notFinite++;
      return;
    }
    const error = Math.abs(value - exact);
    const relative = error === 0 ? 0 : error / exactOut.magnitude[i];
    largest = Math.max(largest, error);
    largestRelative = Math.max(largestRelative, relative);
    squares += relative * relative;
    elements++;
  });
  let [largestLse, sumLse, rows] = [0, 0, 0];
  lse.forEach((value, row) => {
    const exact = exactLse.values[row];
    if (!Number.isFinite(exact)) return;
    if (!Number.isFinite(value)) {
      notFinite++;
      return;
    }
    largestLse = Math.max(largestLse, Math.abs(value - exact));
    sumLse += value - exact;
    rows++;
  });
  const ofElements = (value: number): number | null => (elements === 0 ? null : value);
  const ofRows = (value: number): number | null => (rows === 0 ? null : value);
  return {
    largest: ofElements(largest === 0 ? 0 : largest / largestOutput),
    largestRelative: ofElements(largestRelative),
    rootMeanSquare: ofElements(Math.sqrt(squares / elements)),
    largestLse: ofRows(largestLse),
    meanLse: ofRows(sumLse / rows),
    notFinite,
  };
}

/** An error as a multiple of another; null where there is none or both are 0. */
export function errorRatio(error: number | null, baseline: number | null): number | null {
  if (error === null || baseline === null) return null;
  if (baseline === 0) return error === 0 ? null : Infinity;
  return error / baseline;
}
