import type { ProblemShape } from '../../problem/index.js';

/** Products with V of one evaluation over the rows that a number is fitted to. */
const productBudget = 2 ** 21;
const fewestRows = 6;

/** Rows that a number of a hypothesis is fitted to: `most`, fewer for long problems. */
export function rowsToFit({ keys, vDim }: ProblemShape, most: number): number {
  const affordable = Math.floor(productBudget / Math.max(keys * vDim, 1));
  return Math.max(fewestRows, Math.min(most, affordable));
}
