import { pseudorandom } from '../../setup/problems.js';

/** What an element may err by: at worst, what does not average out, the standard deviation of the rest. */
type ElementBound = Readonly<Record<'total' | 'systematic' | 'deviation', number>>;

/** A quantity that is to be spoiled, with what its elements may err by. */
export interface Spoiled {
  readonly exact: Float64Array;
  readonly bound: Readonly<Record<keyof ElementBound, Float64Array>>;
  /** Elements of a row, and rows of a head. */
  readonly columns: number;
  readonly rowsOfHead: number;
}

/** Makes errors of all elements, of some size: how large they are to be follows from a limit. */
export type Pattern<Of extends Spoiled = Spoiled> = (of: Of) => Float64Array;

/** Rows of the last head that errors are made in: the first of them, and how many. */
export type Place = (of: Spoiled) => readonly [first: number, count: number];

/** Rows of a tile. */
export const tileRows = 128;

export const firstTile: Place = () => [0, tileRows];
export const otherTiles: Place = ({ rowsOfHead }) => [tileRows, rowsOfHead - tileRows];
export const wholeHead: Place = ({ rowsOfHead }) => [0, rowsOfHead];
/** One row, neither the first nor the last. */
export const oneRow: Place = () => [7, 1];

/** Errors in some rows of the last head, so that a test of the first sees none of them. */
export function errorsAt(
  of: Spoiled,
  place: Place,
  error: (element: number, column: number, row: number) => number,
): Float64Array {
  const { exact, rowsOfHead, columns } = of;
  const [first, count] = place(of);
  const firstOfHead = exact.length / columns - rowsOfHead;
  return Float64Array.from(exact, (_, i) => {
    const row = Math.floor(i / columns) - firstOfHead;
    return row < first || row >= first + count ? 0 : error(i, i % columns, row);
  });
}

/** Errors as large as they may be expected, with the signs of a direction. */
export function along<Of extends Spoiled>(
  place: Place,
  direction: (of: Of) => ArrayLike<number>,
): Pattern<Of> {
  return (of) => {
    const signs = direction(of);
    const { systematic, deviation } = of.bound;
    return errorsAt(of, place, (i) => Math.sign(signs[i]) * (systematic[i] + deviation[i]));
  };
}

/** Errors as large as roundings make them, of random signs; times a factor on the first tile. */
export function scattered(place: Place, ofFirstTile = 1): Pattern {
  return (of) => {
    const random = pseudorandom(5);
    const { total, deviation } = of.bound;
    return errorsAt(of, place, (i, _, row) => {
      // Where the worst case is next to what is expected, an error far beyond that would be seen by itself.
      const size = Math.min(deviation[i], total[i] / 3);
      return (row < tileRows ? ofFirstTile : 1) * Math.sign(random()) * size;
    });
  };
}

/** An error of one element: that of the last head of which some measure is the largest. */
export function single(measure: (bound: ElementBound) => number): Pattern {
  return (of) => {
    const { total, systematic, deviation } = of.bound;
    let [best, most] = [-1, -Infinity];
    errorsAt(of, wholeHead, (i) => {
      const found = measure({
        total: total[i],
        systematic: systematic[i],
        deviation: deviation[i],
      });
      if (found > most) [best, most] = [i, found];
      return 0;
    });
    return errorsAt(of, wholeHead, (i) => (i === best ? 1 : 0));
  };
}

/** The element whose worst case is furthest beyond what independent roundings add up to. */
export const looselyBounded = single(
  ({ total, systematic, deviation }) => total / (systematic + 7 * deviation),
);
/** The element whose worst case is next to what roundings are expected to make. */
export const tightlyBounded = single(({ total, deviation }) => deviation / total);

/** Σ a·b. */
export function product(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/** What is left of a pattern that is orthogonal to others. */
export function orthogonal(pattern: Float64Array, others: readonly Float64Array[]): Float64Array {
  const without = (from: Float64Array, basis: readonly Float64Array[]) =>
    basis.reduce((left, one) => {
      const share = product(left, one) / product(one, one);
      return left.map((x, i) => x - share * one[i]);
    }, from);
  const basis: Float64Array[] = [];
  for (const other of others) {
    // Gram and Schmidt, twice, which is enough.
    const left = without(without(other, basis), basis);
    if (product(left, left) > 1e-20 * product(other, other)) basis.push(left);
  }
  return without(without(pattern, basis), basis);
}
