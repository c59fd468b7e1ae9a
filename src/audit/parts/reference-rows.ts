import type { AttentionReference } from '../../../oracles/index.js';
import type { ProblemShape } from '../../problem/index.js';

/**
 * The rows of a reference from row `first` of all [batch, heads, queries] on: the reference itself where these are all. Shares
 * memory with it.
 * @param ofProblem the shape of a problem of these rows
 */
export function referenceRows(
  reference: AttentionReference,
  ofProblem: ProblemShape,
  first: number,
): AttentionReference {
  const { shape, quantities, maximum, level, denominator } = reference;
  const rows = ofProblem.batch * ofProblem.heads * ofProblem.queries;
  if (ofProblem.heads === shape.heads && rows === denominator.length) return reference;
  const { out, lse } = quantities;
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

/** A reference of zeros, to be filled. */
export function emptyReference(shape: ProblemShape): AttentionReference {
  const { batch, heads, queries, vDim } = shape;
  const rows = batch * heads * queries;
  const numbers = (length: number) => new Float64Array(length);
  return {
    shape,
    quantities: {
      out: {
        values: numbers(rows * vDim),
        radius: numbers(rows * vDim),
        magnitude: numbers(rows * vDim),
      },
      lse: { values: numbers(rows), radius: numbers(rows), magnitude: null },
    },
    maximum: numbers(rows),
    denominator: numbers(rows),
    level: new Uint8Array(rows),
  };
}

/** Writes a part's reference to where its rows are. */
export function fillReference(to: AttentionReference, part: AttentionReference, row: number): void {
  const { vDim } = to.shape;
  const { out, lse } = to.quantities;
  out.values.set(part.quantities.out.values, row * vDim);
  out.radius.set(part.quantities.out.radius, row * vDim);
  out.magnitude.set(part.quantities.out.magnitude, row * vDim);
  lse.values.set(part.quantities.lse.values, row);
  lse.radius.set(part.quantities.lse.radius, row);
  to.maximum.set(part.maximum, row);
  to.denominator.set(part.denominator, row);
  to.level.set(part.level, row);
}
