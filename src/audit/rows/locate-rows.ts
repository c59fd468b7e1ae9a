import type { ProblemShape, RowSelection } from '../../problem/index.js';
import { judgedQuantities, type JudgedOutputs, type JudgedQuantity } from '../judge-quantity.js';
import type { Coordinates } from '../kernel-outputs.js';

/** A place among rows that are a sample. */
interface Rows {
  readonly head: number;
  readonly firstRow: number;
  readonly rows: number;
}

/** Says where places of a sample are in the problem that it is taken from. */
export interface RowLocator {
  readonly place: (at: Coordinates) => Coordinates;
  /** @param rows of one head, counted over [batch, heads] */
  readonly rows: <T extends Rows>(rows: T) => T & { readonly lastRow: number };
}

/** The places of a sample's rows in the whole problem. */
export function createRowLocator(
  { queries: selected }: RowSelection,
  { heads, queries }: Pick<ProblemShape, 'heads' | 'queries'>,
): RowLocator {
  return {
    place: (at) => ({
      ...at,
      query: selected[(at.batch * heads + at.head) * queries + at.query],
    }),
    rows: (rows) => ({
      ...rows,
      firstRow: selected[rows.head * queries + rows.firstRow],
      lastRow: selected[rows.head * queries + rows.firstRow + rows.rows - 1],
    }),
  };
}

function placed<T extends { readonly at: Coordinates }>(one: T | null, { place }: RowLocator) {
  return one === null ? null : { ...one, at: place(one.at) };
}

function locateQuantity(judged: JudgedQuantity, locator: RowLocator): JudgedQuantity {
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

/** What the tests say of a sample of rows, with places as they are in the whole problem. */
export function locateOutputs(outputs: JudgedOutputs, locator: RowLocator): JudgedOutputs {
  const located = judgedQuantities(outputs).map((judged) => [
    judged.quantity.name,
    locateQuantity(judged, locator),
  ]);
  return { ...outputs, ...(Object.fromEntries(located) as unknown as JudgedOutputs) };
}
