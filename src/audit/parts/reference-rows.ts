import type { AttentionReference } from '../../../oracles/index.js';

/**
 * The rows of a reference from row `first` of all [batch, heads, queries] on. Shares memory with it.
 * @param ofProblem the shape of a problem of these rows
 */
export function referenceRows(
  { shape, quantities: { out, lse }, maximum, level, denominator }: AttentionReference,
  ofProblem: AttentionReference['shape'],
  first: number,
): AttentionReference {
  const rows = ofProblem.batch * ofProblem.heads * ofProblem.queries;
  const { vDim } = shape;
  const ofRows = <T extends Float64Array | Uint8Array>(values: T, dim: number) =>
    values.subarray(first * dim, (first + rows) * dim) as T;
  return {
    shape: ofProblem,
    quantities: {
      out: {
        values: ofRows(out.values, vDim),
        radius: ofRows(out.radius, vDim),
        magnitude: ofRows(out.magnitude, vDim),
      },
      lse: { values: ofRows(lse.values, 1), radius: ofRows(lse.radius, 1), magnitude: null },
    },
    maximum: ofRows(maximum, 1),
    level: ofRows(level, 1),
    denominator: ofRows(denominator, 1),
  };
}
