import type { AttentionReference } from '../../../oracles/index.js';
import { rowPlaces, type Problem } from '../../problem/index.js';

/** The usage of bounds in one of several packed sequences: its worst element. */
export interface SequenceUsage {
  readonly sequence: number;
  readonly queries: number;
  readonly keys: number;
  /** The largest share of its bound that a finite element of the output uses; 0 without elements. */
  readonly worstRatio: number;
  /** Finite elements beyond their bound. */
  readonly outside: number;
}

/**
 * The share of their bounds that the output's elements use, sequence by sequence; null for a problem without
 * packed sequences.
 * @param values the output, decoded
 * @param limits the bound of each of its elements
 */
export function usageBySequence(
  problem: Problem,
  { shape, quantities }: AttentionReference,
  values: Float64Array,
  limits: Float64Array,
): SequenceUsage[] | null {
  const { sequences } = problem;
  if (sequences === undefined) return null;
  const { heads, queries, vDim } = shape;
  const placeOf = rowPlaces(problem, shape);
  const { values: exacts } = quantities.out;
  const usages = sequences.map(() => ({ worstRatio: 0, outside: 0 }));
  for (let head = 0; head < heads; head++)
    for (let row = 0; row < queries; row++) {
      const usage = usages[placeOf(head, row).sequence];
      const first = (head * queries + row) * vDim;
      for (let i = first; i < first + vDim; i++) {
        const error = Math.abs(values[i] - exacts[i]);
        if (!Number.isFinite(error)) continue;
        const ratio = error === 0 ? 0 : error / limits[i];
        if (ratio > 1) usage.outside++;
        usage.worstRatio = Math.max(usage.worstRatio, ratio);
      }
    }
  return sequences.map(({ queries, keys }, sequence) => ({
    sequence,
    queries,
    keys,
    ...usages[sequence],
  }));
}
