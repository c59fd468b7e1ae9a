import { defaultRows } from '../../audit/index.js';
import { problemShape, type Problem } from '../../problem/index.js';

/** Number of rows to judge: `all`, a number, or null for the usual number for the problem. */
export interface RowsRequest {
  readonly count: number | 'all' | null;
  /** Draws the rows of a sample; default: at random. */
  readonly seed?: number | undefined;
}

/** Upper limit of seeds that are drawn at random, so that they are easy to type. */
const mostSeeds = 2 ** 31;

/** A request with a seed: its own, or one drawn at random. */
export function seededRows(request: RowsRequest): RowsRequest & { readonly seed: number } {
  return { ...request, seed: request.seed ?? Math.floor(Math.random() * mostSeeds) };
}

/** Number of rows that a request selects, and the seed that draws them; null for all. */
export function chosenRows(
  problem: Problem,
  request: RowsRequest | undefined,
): { readonly rows: number; readonly seed: number } | null {
  const { count, seed } = seededRows(request ?? { count: null });
  const rows = count ?? defaultRows(problem, problemShape(problem));
  return rows === null || rows === 'all' ? null : { rows, seed };
}
