import type { Problem, ProblemShape } from '../../problem/index.js';

/** Number of multiply-adds of Q·K and P·V from which on an audit judges a sample of the rows, unless it is told otherwise. */
export const mostMultiplyAdds = 1e12;

/**
 * Multiply-adds of a sample: some minutes on two cores. It never makes them fewer rows than `fewestRows`: of 4096
 * rows, one is in a fault of 0.1 % of all rows with a probability of 98 %.
 */
const sampleMultiplyAdds = 2 ** 37;
const fewestRows = 4096;
const fewestOfHead = 32;

/** The multiply-adds of Q·K and P·V, without masks except for sequences. */
export function multiplyAddsOf({ sequences }: Problem, shape: ProblemShape): number {
  const { batch, heads, queries, keys, qkDim, vDim } = shape;
  const pairs =
    sequences === undefined
      ? batch * queries * keys
      : sequences.reduce((sum, one) => sum + one.queries * one.keys, 0);
  return heads * pairs * (qkDim + vDim);
}

/** Number of rows that are judged by default; null for all. */
export function defaultRows(problem: Problem, shape: ProblemShape): number | null {
  const { batch, heads, queries } = shape;
  const all = multiplyAddsOf(problem, shape);
  if (all <= mostMultiplyAdds) return null;
  const affordable = Math.floor(sampleMultiplyAdds / (all / (batch * heads * queries)));
  return Math.max(fewestRows, fewestOfHead * batch * heads, affordable);
}
