import { levels, type AttentionReference, type Level } from '../../oracles/index.js';
import {
  compareQuantity,
  type ComparedQuantity,
  type ElementBounds,
} from '../../src/audit/index.js';
import type { FormatName } from '../../src/formats/index.js';
import { quantities, type ProblemShape } from '../../src/problem/index.js';

/** What a test says of a reference; the rest is one head of one column that is exactly 0 everywhere. */
export interface HandMade {
  readonly batch?: number;
  readonly heads?: number;
  readonly queries: number;
  readonly vDim?: number;
  readonly out?: (element: number) => number;
  readonly lse?: (row: number) => number;
  readonly level?: (row: number) => Level;
}

/** An oracle's answer that a test has made up: nothing is computed, every radius is 0. */
export function handMadeReference(given: HandMade): AttentionReference {
  const { batch = 1, heads = 1, queries, vDim = 1 } = given;
  const { out = () => 0, lse = () => 0, level = () => 'fp64' } = given;
  const rows = batch * heads * queries;
  const shape: ProblemShape = {
    batch,
    heads,
    kvHeads: heads,
    groupSize: 1,
    queries,
    vDim,
    keys: 1,
    qkDim: 1,
  };
  const values = Float64Array.from({ length: rows * vDim }, (_, i) => out(i));
  return {
    shape,
    quantities: {
      out: { values, radius: new Float64Array(rows * vDim), magnitude: values.map(Math.abs) },
      lse: {
        values: Float64Array.from({ length: rows }, (_, row) => lse(row)),
        radius: new Float64Array(rows),
        magnitude: null,
      },
    },
    maximum: new Float64Array(rows),
    denominator: Float64Array.from({ length: rows }, (_, row) => lse(row)),
    level: Uint8Array.from({ length: rows }, (_, row) => levels.indexOf(level(row))),
  };
}

/** Values of a quantity beside a reference. */
export function compared(
  reference: AttentionReference,
  name: 'out' | 'lse',
  values: Float64Array,
  format: FormatName,
): ComparedQuantity {
  const quantity = quantities.find((one) => one.name === name)!;
  return compareQuantity(reference, { quantity, format, values });
}

/** Bounds that are the same for every element, of rows that err independently unless `unit` says else. */
export function handMadeBounds(
  { shape }: AttentionReference,
  of: Partial<Record<'total' | 'systematic' | 'known' | 'deviation', number>>,
  unit: (row: number) => number = (row) => row,
): ElementBounds {
  const rows = shape.batch * shape.heads * shape.queries;
  const filled = (length: number, value: number) => new Float64Array(length).fill(value);
  const combined = (length: number) => ({
    total: filled(length, of.total ?? Infinity),
    systematic: filled(length, of.systematic ?? 0),
    known: filled(length, of.known ?? 0),
    deviation: filled(length, of.deviation ?? 0),
  });
  return {
    quantities: { out: combined(rows * shape.vDim), lse: combined(rows) },
    unit: Int32Array.from({ length: rows }, (_, row) => unit(row)),
  };
}
