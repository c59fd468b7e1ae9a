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
  const lse = reference.lse.map((value) => value + shift.lse);
  return {
    ...reference,
    shape: problemShape(shifted),
    lse,
    lseRadius: reference.lseRadius.map((radius, row) =>
      Number.isFinite(lse[row]) ? radius + shift.lseError + 2 ** -52 * Math.abs(lse[row]) : radius,
    ),
    maximum: reference.maximum.map((value) => value + shift.maximum),
  };
}
