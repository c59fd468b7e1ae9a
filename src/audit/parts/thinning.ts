import type { AttentionReference } from '../../../oracles/index.js';
import { problemShape, type Problem, type ProblemShape } from '../../problem/index.js';
import type { GivenQuantity } from '../kernel-outputs.js';
import { drawsOf, rowsProblem, type RowSample } from '../rows/index.js';
import type { Part } from './part-plan.js';
import { mapQuantities } from './reference-rows.js';

/**
 * The rows of each head of a sample that statistics are made of: one in `every`, from `first` on. `every` divides
 * the rows of a tile of the structure tests, at which parts begin.
 */
export interface Thinning {
  readonly every: number;
  readonly first: number;
}

/** The number of keys beyond which the statistics of a sample are made of a part of its rows. */
const fewestKeys = 2 ** 15;

/** The largest `every`, so that at least one row of so many is left, and the fewest rows left of a head. */
const mostEvery = 8;
const fewestRows = 16;

/** Its own stream of random numbers: heads have those from 0 on. */
const stream = -2;

/**
 * The sampled rows that the statistics are made of, by the sample's seed; null for all of them. Statistics are: the
 * walk over all weights of a row for the structure tests, and textbook attention for the usual checks; exact values
 * and bounds are of all rows.
 * @param shape the shape of the whole problem, or of its sampled rows
 */
export function planThinning(
  { keys, batch, heads }: ProblemShape,
  { rows, seed }: Pick<RowSample, 'rows' | 'seed'>,
): Thinning | null {
  if (keys <= fewestKeys) return null;
  const ofHead = rows / (batch * heads);
  let every = 1;
  while (every < mostEvery && Math.floor(ofHead / (2 * every)) >= fewestRows) every *= 2;
  return every === 1 ? null : { every, first: drawsOf(seed, stream)(every) };
}

/** Number of the first `rows` rows of a head that are left. */
export function thinnedRows(rows: number, { every, first }: Thinning): number {
  return Math.max(0, Math.ceil((rows - first) / every));
}

/** The sizes of a problem's rows that are left. */
export function thinnedShape(shape: ProblemShape, thinning: Thinning): ProblemShape {
  return { ...shape, queries: thinnedRows(shape.queries, thinning) };
}

/** A part among the rows that are left. */
export function thinnedPart({ head, firstRow, rows }: Part, thinning: Thinning): Part {
  const first = thinnedRows(firstRow, thinning);
  return { head, firstRow: first, rows: thinnedRows(firstRow + rows, thinning) - first };
}

/** The places of the rows that are left among all rows of some heads. */
function rowsLeft(heads: number, queries: number, thinning: Thinning): Int32Array {
  const left = thinnedRows(queries, thinning);
  return Int32Array.from(
    { length: heads * left },
    (_, i) => Math.floor(i / left) * queries + thinning.first + (i % left) * thinning.every,
  );
}

function takeRows<T extends Float64Array | Uint8Array>(
  values: T,
  dim: number,
  rows: Int32Array,
): T {
  const Class = values.constructor as new (length: number) => T;
  const taken = new Class(rows.length * dim);
  rows.forEach((row, i) => taken.set(values.subarray(row * dim, (row + 1) * dim), i * dim));
  return taken;
}

/** The values of a quantity of some heads, [heads, queries, dim], for the rows that are left. */
export function thinnedValues(
  values: Float64Array,
  { batch, heads, queries }: ProblemShape,
  dim: number,
  thinning: Thinning,
): Float64Array {
  return takeRows(values, dim, rowsLeft(batch * heads, queries, thinning));
}

/** The rows of a part that are left, as a part of their own. */
export function thinnedTensors<
  T extends {
    readonly problem: Problem;
    readonly out: GivenQuantity;
    readonly lse: GivenQuantity | null;
  },
>(tensors: T, thinning: Thinning): T {
  const { problem, out, lse } = tensors;
  const shape = problemShape(problem);
  const rows = rowsLeft(shape.batch * shape.heads, shape.queries, thinning);
  const values = (given: GivenQuantity, dim: number) => ({
    ...given,
    values: takeRows(given.values, dim, rows),
  });
  return {
    ...tensors,
    problem: rowsProblem(problem, shape, rows),
    out: values(out, shape.vDim),
    lse: lse === null ? null : values(lse, 1),
  };
}

/** The exact values of the rows that are left. */
export function thinnedReference(
  reference: AttentionReference,
  thinning: Thinning,
): AttentionReference {
  const { shape, quantities, maximum, denominator, level } = reference;
  const rows = rowsLeft(shape.batch * shape.heads, shape.queries, thinning);
  const numbers = (values: Float64Array) => takeRows(values, 1, rows);
  return {
    shape: thinnedShape(shape, thinning),
    quantities: mapQuantities(quantities, denominator.length, (values, dim) =>
      takeRows(values, dim, rows),
    ),
    maximum: numbers(maximum),
    denominator: numbers(denominator),
    level: takeRows(level, 1, rows),
  };
}

/** Results about rows that are left, with places among all rows. */
export function placedAmongAll<T extends { readonly firstRow: number; readonly lastRow: number }>(
  result: T,
  { every, first }: Thinning,
): T {
  const { firstRow, lastRow } = result;
  return { ...result, firstRow: first + every * firstRow, lastRow: first + every * lastRow };
}
