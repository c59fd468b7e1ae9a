import { rowPlaces, type ProblemShape, type RowsOf } from '../../problem/index.js';
import { judgedQuantities, type JudgedOutputs, type JudgedQuantity } from '../judge-quantity.js';
import type { Coordinates } from '../kernel-outputs.js';
import type { KeySample } from './key-sample.js';

/** A place among rows that are a sample, or of several sequences. */
interface Rows {
  readonly head: number;
  readonly firstRow: number;
  readonly rows: number;
  /** Default: the last of `rows` rows from the first on. */
  readonly lastRow?: number;
}

/** Turns places into the sequence and the place within it, and for a sample into places of the problem that it is taken from. */
export interface RowLocator {
  readonly place: (at: Coordinates) => Coordinates;
  /** @param rows rows of one head, counted over [batch, heads] */
  readonly rows: <T extends Rows>(rows: T) => T & { readonly lastRow: number };
}

/**
 * Makes the locator of a quantity.
 * @param original the number of a head's row in the whole problem
 */
export function locatorOf(
  place: RowLocator['place'],
  original: (head: number, row: number) => number,
): RowLocator {
  return {
    place,
    rows: (part) => ({
      ...part,
      firstRow: original(part.head, part.firstRow),
      lastRow: original(part.head, part.lastRow ?? part.firstRow + part.rows - 1),
    }),
  };
}

/**
 * The places of a sample's rows in the whole problem, and of rows of packed sequences within their own; null for a
 * problem whose rows are where they seem to be. Several rows together are counted over all sequences.
 */
export function createRowLocator(problem: RowsOf, shape: ProblemShape): RowLocator | null {
  const { rows, sequences } = problem;
  if (rows === undefined && sequences === undefined) return null;
  const { heads, queries } = shape;
  const placeOf = rowPlaces(problem, shape);
  return locatorOf(
    (at) => {
      const { sequence, query } = placeOf(at.batch * heads + at.head, at.query!);
      return sequences === undefined ? { ...at, query } : { ...at, query, sequence };
    },
    (head, row) => (rows === undefined ? row : rows.queries[head * queries + row]),
  );
}

/**
 * The places of a sample's keys in the whole problem, and of keys of packed sequences within their own, as of `createRowLocator`.
 * @param sample the keys that are judged; null for all
 */
export function createKeyLocator(
  { sequences }: RowsOf,
  { batch, kvHeads: heads }: ProblemShape,
  sample: KeySample | null,
): RowLocator {
  const original = (head: number, row: number) =>
    sample === null ? row : sample.selection[head * (sample.keys / (batch * heads)) + row];
  return locatorOf((at) => {
    const key = original(at.batch * heads + at.head, at.key!);
    if (sequences === undefined) return { ...at, key };
    const sequence = sequences.findIndex(
      ({ firstKey, keys }) => key >= firstKey && key < firstKey + keys,
    );
    return { ...at, key: key - sequences[sequence].firstKey, sequence };
  }, original);
}

/** A result with its place as a locator tells it. */
export function placed<T extends { readonly at: Coordinates }>(
  one: T | null,
  { place }: RowLocator,
): T | null {
  return one === null ? null : { ...one, at: place(one.at) };
}

/** Results of the tests of a quantity, with places as a locator tells them. */
export function locateQuantity<Q extends JudgedQuantity>(judged: Q, locator: RowLocator): Q {
  const structure = judged.structure.map(locator.rows);
  if (judged.row === 'number') {
    const { worst, firstNonFinite } = judged.numbers;
    const numbers = {
      ...judged.numbers,
      worst: placed(worst, locator),
      firstNonFinite: placed(firstNonFinite, locator),
    };
    return { ...judged, numbers, structure };
  }
  const { elements, spread } = judged;
  const first = elements.firstNonFinite;
  return {
    ...judged,
    elements: {
      ...elements,
      worst: placed(elements.worst, locator),
      firstNonFinite: first === null ? null : locator.place(first),
    },
    spread: {
      ...spread,
      worst: placed(spread.worst, locator),
      results: spread.results.map(locator.rows),
    },
    structure,
  };
}

/** Results of the tests of a sample of rows, with places as they are in the whole problem. */
export function locateOutputs(outputs: JudgedOutputs, locator: RowLocator): JudgedOutputs {
  const located = judgedQuantities(outputs).map((judged) => [
    judged.quantity.name,
    locateQuantity(judged, locator),
  ]);
  return { ...outputs, ...(Object.fromEntries(located) as unknown as JudgedOutputs) };
}
