import type { AttentionReference } from '../../oracles/index.js';
import { problemShape, type Problem } from '../../src/problem/index.js';

/** By how much the exact attention of two problems of the same O differs, in natural-log units. */
export interface ReferenceShift {
  /** Of the LSE, and how far it may be off. */
  readonly lse: number;
  readonly lseError: number;
  /** Of each row's largest score. */
  readonly maximum: number;
}

/**
 * The exact attention of a problem from that of another with the same O, whose LSEs all differ by the
 * same. The roundings of the sums, fp64 to nearest, are added to the radii.
 * @param shifted the problem whose exact attention it is
 */
export function shiftReference(
  reference: AttentionReference,
  shift: ReferenceShift,
  shifted: Problem,
): AttentionReference {
  const { out, lse } = reference.quantities;
  const values = lse.values.map((value) => value + shift.lse);
  const radius = lse.radius.map((radius, row) =>
    Number.isFinite(values[row])
      ? radius + shift.lseError + 2 ** -52 * Math.abs(values[row])
      : radius,
  );
  return {
    ...reference,
    shape: problemShape(shifted),
    quantities: { out, lse: { values, radius, magnitude: null } },
    maximum: reference.maximum.map((value) => value + shift.maximum),
  };
}
