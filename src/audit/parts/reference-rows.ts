import type {
  AttentionReference,
  ReferenceQuantities,
  ReferenceQuantity,
} from '../../../oracles/index.js';
import type { ProblemShape } from '../../problem/index.js';

/**
 * Every quantity with other arrays.
 * @param rows of each quantity
 * @param map makes an array of one that has `dim` numbers a row
 */
export function mapQuantities(
  quantities: ReferenceQuantities,
  rows: number,
  map: (values: Float64Array, dim: number) => Float64Array,
): ReferenceQuantities {
  const entries = Object.entries(quantities as Readonly<Record<string, ReferenceQuantity>>);
  const mapped = entries.map(([name, { values, radius, magnitude }]) => {
    const dim = rows === 0 ? 1 : values.length / rows;
    return [
      name,
      {
        values: map(values, dim),
        radius: map(radius, dim),
        magnitude: magnitude === null ? null : map(magnitude, dim),
      },
    ] as const;
  });
  return Object.fromEntries(mapped) as unknown as ReferenceQuantities;
}

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
  const ofRows = <T extends Float64Array | Uint8Array>(values: T, dim: number) =>
    values.subarray(first * dim, (first + rows) * dim) as T;
  return {
    shape: ofProblem,
    quantities: mapQuantities(quantities, denominator.length, ofRows),
    maximum: ofRows(maximum, 1),
    level: ofRows(level, 1),
    denominator: ofRows(denominator, 1),
  };
}

/** A reference of zeros, to be filled; quantities beside the forward's are added by `fillReference`. */
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
  const [rows, ofPart] = [to.denominator.length, part.denominator.length];
  const quantities = to.quantities as Record<string, ReferenceQuantity | undefined>;
  const zeros = (_: Float64Array, dim: number) => new Float64Array(rows * dim);
  for (const [name, quantity] of Object.entries(part.quantities)) {
    if (quantity === undefined) continue;
    const whole = (quantities[name] ??= mapQuantities(part.quantities, ofPart, zeros)[
      name
    ] as ReferenceQuantity);
    const at = ofPart === 0 ? 0 : row * (quantity.values.length / ofPart);
    whole.values.set(quantity.values, at);
    whole.radius.set(quantity.radius, at);
    if (quantity.magnitude !== null) whole.magnitude?.set(quantity.magnitude, at);
  }
  to.maximum.set(part.maximum, row);
  to.denominator.set(part.denominator, row);
  to.level.set(part.level, row);
}
