import {
  doubleDoubleFromSum,
  productError,
  sumError,
  type DoubleDouble,
} from '../../arith/index.js';
import type { ExponentRow } from '../../../oracles/index.js';
import { decodeTensor } from '../../formats/index.js';
import {
  keysOf,
  problemMask,
  problemShape,
  scoreLaw,
  type Problem,
  type ProblemShape,
} from '../../problem/index.js';
import { exponentsOf, type RowPlace } from '../contracts/index.js';
import { softcapSlopes } from './softcap-slopes.js';

/** The numbers of a row of an input: one of each column, or one in all. */
export type NumbersOf = (place: RowPlace) => Float64Array;

/** What a backward kernel is given beside Q, K and V; null for what it is not. */
export interface GradientInputs {
  readonly dout: NumbersOf;
  readonly out: NumbersOf | null;
  /** In the units that the kernel takes. */
  readonly lse: NumbersOf | null;
  /** Σ dO·O of a row, as the kernel is given it. */
  readonly delta: NumbersOf | null;
}

/** A sum of products, and the sum of their sizes. */
export interface SizedSum {
  readonly value: DoubleDouble;
  readonly size: number;
}

/** Σ a·b with the errors of products and sums added up apart: about twice the accuracy of fp64. */
export function dotProduct(a: Float64Array, b: Float64Array): SizedSum {
  let [sum, errors, size] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    const product = a[i] * b[i];
    const next = sum + product;
    errors += productError(a[i], b[i], product) + sumError(sum, product, next);
    sum = next;
    size += Math.abs(product);
  }
  return { value: doubleDoubleFromSum(sum, errors), size };
}

/** A row of queries, and what its part in the gradients is made of. */
export interface GradientRow {
  readonly place: RowPlace;
  readonly exponents: ExponentRow;
  /** The key of each exponent. */
  readonly keys: readonly number[];
  readonly query: Float64Array;
  readonly dout: Float64Array;
  readonly lse: number | null;
  readonly delta: number | null;
  /** Σ dO·O by the O that is given; null for none. */
  readonly ofOut: SizedSum | null;
  /** dO·V of the key with exponent j; null where dropout drops it. */
  readonly product: (j: number) => SizedSum | null;
  /** The slope of the softcap at each exponent; null without one. */
  readonly slopes: readonly DoubleDouble[] | null;
  /** The row of K of the key with exponent j. */
  readonly key: (j: number) => Float64Array;
}

/** The rows of a tensor [batch, heads, rows, dim] of a problem. */
function rowsIn(tensor: Problem['q'], [heads, rows]: readonly [number, number]) {
  const dim = tensor.shape.at(-1) ?? 0;
  return (batch: number, head: number, row: number) => {
    const first = ((batch * heads + head) * rows + row) * dim;
    return decodeTensor(tensor, first, first + dim);
  };
}

/** What each row of a problem sees. */
export function visibleKeysOf(problem: Problem): (place: RowPlace) => readonly number[] {
  const shape = problemShape(problem);
  const mask = problemMask(problem, shape);
  return ({ batch, head, row }) => [...keysOf(mask.ranges(batch * shape.heads + head, row))];
}

function keyRows(problem: Problem, { kvHeads, groupSize, keys }: ProblemShape) {
  const ofKeys = rowsIn(problem.k, [kvHeads, keys]);
  return ({ batch, head }: RowPlace, key: number) =>
    ofKeys(batch, Math.floor(head / groupSize), key);
}

/**
 * A function that gives rows of a problem whose numbers are finite.
 * @throws RequestError when the problem's shapes do not fit together
 */
export function gradientRows(
  problem: Problem,
  { dout, out, lse, delta }: GradientInputs,
): (place: RowPlace) => GradientRow {
  const shape = problemShape(problem);
  const exponentsAt = exponentsOf(problem);
  const keysAt = visibleKeysOf(problem);
  const ofQueries = rowsIn(problem.q, [shape.heads, shape.queries]);
  const ofKeys = keyRows(problem, shape);
  const law = scoreLaw(problem, shape);
  return (place) => {
    const exponents = exponentsAt(place);
    const keys = keysAt(place);
    const ofDout = dout(place);
    const products = new Map<number, SizedSum>();
    const product = (j: number): SizedSum | null => {
      const known = products.get(j);
      if (known !== undefined) return known;
      const value = exponents.value(j);
      if (value === null) return null;
      const made = dotProduct(ofDout, value);
      products.set(j, made);
      return made;
    };
    return {
      place,
      exponents,
      keys,
      query: ofQueries(place.batch, place.head, place.row),
      dout: ofDout,
      lse: lse?.(place)[0] ?? null,
      delta: delta?.(place)[0] ?? null,
      ofOut: out === null ? null : dotProduct(ofDout, out(place)),
      product,
      slopes: softcapSlopes(law, place.batch * shape.heads + place.head, place.row, {
        exponents,
        keys,
      }),
      key: (j) => ofKeys(place, keys[j]),
    };
  };
}
