import { formats, patternsOf, type PatternArray, type Tensor } from '../../src/formats/index.js';
import { RequestError } from '../../src/request-error.js';
import type {
  BackwardPatterns,
  BackwardPiece,
  OrderMatch,
  OrderMatches,
  PreparedBackward,
} from './model.js';

/** Gradients of a whole problem that are compared with a model's; null, or left out, for those that are missing. */
export type GivenGradients = Readonly<Partial<Record<keyof BackwardPatterns, Tensor | null>>>;

const names = ['dq', 'dk', 'dv'] as const;

/**
 * The largest share of a piece's elements that may differ for other orders of its additions to be tried: orders change the last bits
 * of sums, few of which survive rounding; a larger difference comes from another kernel.
 */
const mostUnequal = 1 / 4;

/** The lengths of a piece's gradients, in elements. */
function pieceLengths({
  shape,
}: PreparedBackward): Readonly<Record<keyof BackwardPatterns, number>> {
  const { groupSize, queries, keys, qkDim, vDim } = shape;
  return { dq: groupSize * queries * qkDim, dk: keys * qkDim, dv: keys * vDim };
}

/**
 * Makes a function from pieces to the patterns of their gradients.
 * @param kernel whose backward they are compared with, as in `fa4`
 * @throws RequestError for gradients in another format than the kernel's, or of another size
 */
export function givenPieces(
  kernel: string,
  prepared: PreparedBackward,
  given: GivenGradients,
): (piece: number) => BackwardPatterns {
  const lengths = pieceLengths(prepared);
  const format = formats[prepared.format];
  const slicesOf = (name: keyof BackwardPatterns): ((piece: number) => PatternArray | null) => {
    const tensor = given[name] ?? null;
    if (tensor === null) return () => null;
    if (tensor.format !== prepared.format)
      throw new RequestError(
        `${name} is ${tensor.format}, and ${kernel} gives ${prepared.format}; their bits cannot be compared`,
      );
    if (tensor.data.length !== lengths[name] * prepared.pieces)
      throw new RequestError(
        `${name} has ${tensor.data.length} elements, and ${kernel} gives ${lengths[name] * prepared.pieces}`,
      );
    const patterns = patternsOf(tensor.data, format);
    const length = patterns.length / Math.max(prepared.pieces, 1);
    return (piece) => patterns.subarray(piece * length, (piece + 1) * length);
  };
  const [dq, dk, dv] = names.map(slicesOf);
  return (piece) => ({ dq: dq(piece), dk: dk(piece), dv: dv(piece) });
}

/** Number of elements, of equally many words each, that have the same patterns. */
function countEqual(a: PatternArray, b: PatternArray, elements: number): number {
  const words = a.length / Math.max(elements, 1);
  let equal = 0;
  for (let i = 0; i < elements; i++) {
    let isEqual = true;
    for (let word = i * words; word < (i + 1) * words; word++)
      if (a[word] !== b[word]) isEqual = false;
    if (isEqual) equal++;
  }
  return equal;
}

/** A piece of a model's gradients, and the comparison of given ones with it. */
export interface MatchedPiece {
  readonly made: BackwardPiece;
  readonly matches: OrderMatches;
}

/**
 * Compares given gradients of a key/value head with the model's, bit for bit. Where additions have no order, elements that differ are
 * judged by whether some order gives them, unless too many differ for an order to be the cause; then they count as undecided.
 */
export function matchBackwardPiece(
  prepared: PreparedBackward,
  piece: number,
  given: BackwardPatterns,
): MatchedPiece {
  const lengths = pieceLengths(prepared);
  const made = prepared.run(piece);
  const { someOrder } = prepared;
  const plainMatch = (name: keyof BackwardPatterns): OrderMatch | null => {
    const patterns = given[name];
    if (patterns === null) return null;
    const equal = countEqual(patterns, made[name], lengths[name]);
    const others = lengths[name] - equal;
    const [undecided, noOrder] = someOrder === null ? [0, others] : [others, 0];
    return { equal, someOrder: 0, undecided, noOrder };
  };
  const plain = { dq: plainMatch('dq'), dk: plainMatch('dk'), dv: plainMatch('dv') };
  const undecided = names.map((name) => plain[name]?.undecided ?? 0);
  if (someOrder === null || undecided.every((count) => count === 0))
    return { made, matches: plain };
  const [dq, dk, dv] = names.map((name, i) =>
    undecided[i] <= mostUnequal * lengths[name] ? given[name] : null,
  );
  const matched = someOrder(piece, { dq, dk, dv });
  const matches = {
    dq: matched.dq ?? plain.dq,
    dk: matched.dk ?? plain.dk,
    dv: matched.dv ?? plain.dv,
  };
  return { made, matches };
}

/** The matches of two pieces together. */
export function addOrderMatches(a: OrderMatches, b: OrderMatches): OrderMatches {
  const add = (x: OrderMatch | null, y: OrderMatch | null): OrderMatch | null =>
    x === null || y === null
      ? (x ?? y)
      : {
          equal: x.equal + y.equal,
          someOrder: x.someOrder + y.someOrder,
          undecided: x.undecided + y.undecided,
          noOrder: x.noOrder + y.noOrder,
        };
  return { dq: add(a.dq, b.dq), dk: add(a.dk, b.dk), dv: add(a.dv, b.dv) };
}

/** The matches of no pieces. */
export const noOrderMatches: OrderMatches = { dq: null, dk: null, dv: null };
