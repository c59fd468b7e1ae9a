import { formats, type FormatName } from '../../../../formats/index.js';
import { clipRanges, problemMask, rowElements } from '../../../../problem/index.js';
import { rounderTo, type Rounder } from '../../../premises/declared-row.js';
import type { GivenGradient } from '../../judge-gradient.js';
import { backwardRows } from '../replay/backward-row.js';
import type { Replayed } from '../replay/replay.js';

/** Neighbouring rows of one head of a gradient. */
export interface GradientRows {
  /** Counted over the batch. */
  readonly head: number;
  readonly begin: number;
  readonly end: number;
}

/** Terms that rows of a gradient are sums of: factors, rounded as the products take them, times rows of an operand. */
export interface GradientTerms {
  /** [rows, heads, places]: dS, or P of dV; 0 where nothing is seen. */
  readonly factors: Float64Array;
  readonly rows: number;
  /** Number of query heads that add, and of keys or queries of each. */
  readonly heads: number;
  readonly places: number;
  /** [heads, places]: where a term's row of the operand begins. */
  readonly offsets: Int32Array;
  readonly operand: Float64Array;
  readonly columns: number;
}

const isShort = (name: FormatName) => formats[name].precision <= 11 && formats[name].precision > 4;

/** The rounding of P and dS: to the 16 bits of the gradient or of the inputs, else none. */
function factorRounder({ failed }: Replayed, { format }: GivenGradient): Rounder {
  const inputs = failed.problem.q.format;
  const name = isShort(format) ? format : inputs;
  return isShort(name) ? rounderTo(name, 'overflow') : (x) => x;
}

/** Heads and rows of each, and columns, of a gradient. */
export function sizesOf({ failed: { measured } }: Replayed, { quantity }: GivenGradient) {
  const { shape } = measured;
  const [batch, heads, rows] = quantity.axes;
  return {
    heads: shape[batch] * shape[heads],
    rows: shape[rows],
    columns: rowElements(quantity, shape),
    /** Number of query heads that add, and of keys or queries of each. */
    members: quantity.name === 'dq' ? 1 : shape.groupSize,
    places: quantity.name === 'dq' ? shape.keys : shape.queries,
  };
}

/** The terms of some rows of a gradient, in fp64 and rounded as a kernel that has no fault would round them. */
export function gradientTerms(of: Replayed, given: GivenGradient, at: GradientRows): GradientTerms {
  const { failed, operands } = of;
  const { problem, measured } = failed;
  const { groupSize, queries, keys } = measured.shape;
  const { name } = given.quantity;
  const { columns, members, places } = sizesOf(of, given);
  const rounded = factorRounder(of, given);
  const rows = at.end - at.begin;
  const factors = new Float64Array(rows * members * places);
  const offsets = new Int32Array(members * places);
  if (name === 'dq') {
    const rowOf = backwardRows(problem, measured, operands, {});
    const firstKey = Math.floor(at.head / groupSize) * keys;
    for (let key = 0; key < keys; key++) offsets[key] = (firstKey + key) * columns;
    for (let row = 0; row < rows; row++) {
      const { ranges, scores } = rowOf(at.head, at.begin + row);
      for (const { begin, end } of ranges)
        for (let key = begin; key < end; key++) factors[row * keys + key] = rounded(scores[key]);
    }
    return { factors, rows, heads: 1, places, offsets, operand: operands.k, columns };
  }
  const { ranges: seen } = problemMask(problem, measured.shape);
  const rowOf = backwardRows(problem, measured, operands, {
    ranges: (head, query) => clipRanges(seen(head, query), at.begin, at.end),
  });
  for (let member = 0; member < members; member++) {
    const head = at.head * groupSize + member;
    for (let query = 0; query < queries; query++) {
      const term = member * queries + query;
      offsets[term] = (head * queries + query) * columns;
      const row = rowOf(head, query);
      const values = name === 'dv' ? row.weights : row.scores;
      for (const { begin, end } of row.ranges)
        for (let key = begin; key < end; key++)
          factors[(key - at.begin) * members * queries + term] = rounded(values[key]);
    }
  }
  const operand = name === 'dv' ? operands.dout : operands.q;
  return { factors, rows, heads: members, places, offsets, operand, columns };
}
