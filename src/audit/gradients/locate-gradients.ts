import { rowPlaces, type Problem, type ProblemShape } from '../../problem/index.js';
import type { Coordinates } from '../kernel-outputs.js';
import type { KeySample } from '../rows/index.js';
import type { JudgedGradient } from './judge-gradient.js';
import { placeShared, sharedShape } from './shared-gradients.js';

/**
 * Makes a function that turns places into those of rows within their own packed sequence, and of a sample among all rows; it
 * leaves them as they are where there is neither.
 */
function placeIn(problem: Problem, shape: ProblemShape): (at: Coordinates) => Coordinates {
  const { sequences, rows } = problem;
  if (sequences === undefined && rows === undefined) return (at) => at;
  const placeOf = rowPlaces(problem, shape);
  return (at) => {
    const { query, key } = at;
    if (query !== undefined) {
      const place = placeOf(at.batch * shape.heads + at.head, query);
      return sequences === undefined
        ? { ...at, query: place.query }
        : { ...at, query: place.query, sequence: place.sequence };
    }
    if (key === undefined || sequences === undefined) return at;
    const sequence = sequences.findIndex(
      ({ firstKey, keys }) => key >= firstKey && key < firstKey + keys,
    );
    return { ...at, key: key - sequences[sequence].firstKey, sequence };
  };
}

/** Numbers of rows of a gradient in the whole problem; the same numbers where all rows are judged. */
type NumberOf = (head: number, row: number) => number;

/** The numbers of the rows of a gradient, whose head counts over [batch, heads]. */
function numbersOf(
  { quantity, isSample }: JudgedGradient,
  problem: Problem,
  { queries }: ProblemShape,
  keys: KeySample | null,
  heads: number,
): NumberOf {
  const { rows } = problem;
  if (!isSample) return (_, row) => row;
  if (quantity.name === 'dq')
    return (head, row) => (rows === undefined ? row : rows.queries[head * queries + row]);
  return (head, row) => (keys === null ? row : keys.selection[head * (keys.keys / heads) + row]);
}

/**
 * Results of the tests of gradients, with the places of rows as they are in the whole problem, and of single elements within their
 * own sequences.
 * @param keys those that dK and dV were judged of; null for all
 */
export function locateGradients(
  gradients: readonly JudgedGradient[],
  problem: Problem,
  shape: ProblemShape,
  keys: KeySample | null = null,
): readonly JudgedGradient[] {
  const ofRows = placeIn(problem, shape);
  return gradients.map((judged) => {
    const { name } = judged.quantity;
    const numberOf = numbersOf(judged, problem, shape, keys, shape.batch * shape.kvHeads);
    const place = (at: Coordinates): Coordinates => {
      if (name === 'dbias' || name === 'dsink')
        return placeShared(name, sharedShape(problem, shape, name), problem)(at);
      if (at.key === undefined) return ofRows(at);
      return ofRows({ ...at, key: numberOf(at.batch * judged.heads + at.head, at.key) });
    };
    const placed = <T extends { readonly at: Coordinates }>(one: T | null) =>
      one === null ? null : { ...one, at: place(one.at) };
    const ranged = <T extends RowsOfHead>(one: T): T => ({
      ...one,
      firstRow: numberOf(one.head, one.firstRow),
      lastRow: numberOf(one.head, one.lastRow),
    });
    const { error, elements, spread, structure } = judged;
    const first = elements.firstNonFinite;
    return {
      ...judged,
      error: { ...error, worst: placed(error.worst) },
      elements: {
        ...elements,
        worst: placed(elements.worst),
        firstNonFinite: first === null ? null : place(first),
      },
      spread: { ...spread, worst: placed(spread.worst), results: spread.results.map(ranged) },
      structure: structure.map(ranged),
    };
  });
}

/** Rows of a head, from one to another. */
interface RowsOfHead {
  readonly head: number;
  readonly firstRow: number;
  readonly lastRow: number;
}
