import type { AttentionReference } from '../../../oracles/index.js';
import type { MaximumRule } from '../../../kernels/index.js';
import { rowPlaces, type Problem } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';

/**
 * Makes a function that gives the maximum (log2) which rows of a head have in use together, of a sequence; null where
 * each has its own. Rows of the query heads of one kv head may be packed into one tile, those of different sequences
 * are not.
 * @param rule `shared` is what counts: see `MaximumRule`
 * @throws RequestError for a sample of rows, whose tiles hold others
 */
export function createSharedMaximum(
  problem: Problem,
  { shape, maximum }: Pick<AttentionReference, 'shape' | 'maximum'>,
  rule: MaximumRule,
): (head: number, sequence: number) => number | null {
  const shared = rule.kind === 'unknown' ? rule.shared : 'row';
  if (shared === 'row') return () => null;
  if (shared === 'none') return () => 0;
  if (problem.rows !== undefined)
    throw new RequestError(
      'maximum=group is relative to rows that a sample leaves out; judge all rows, or declare another maximum',
    );
  const { heads, kvHeads, groupSize, queries } = shape;
  const placeOf = rowPlaces(problem, shape);
  const largest = new Map<string, number>();
  const nameOf = (head: number, sequence: number) => {
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    return `${kv} ${sequence}`;
  };
  for (let row = 0; row < maximum.length; row++) {
    if (!Number.isFinite(maximum[row])) continue;
    const head = Math.floor(row / queries);
    const name = nameOf(head, placeOf(head, row % queries).sequence);
    largest.set(name, Math.max(largest.get(name) ?? -Infinity, maximum[row]));
  }
  return (head, sequence) => {
    const most = largest.get(nameOf(head, sequence));
    return most === undefined ? null : most / Math.LN2;
  };
}
