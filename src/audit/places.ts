import { rowElements, type ProblemShape, type Quantity } from '../problem/index.js';

/** Where an element stands: batch, head, query, and column where there is one. */
export interface Coordinates {
  readonly batch: number;
  readonly head: number;
  readonly query: number;
  readonly column?: number;
}

function rowAt(heads: number, rows: number, index: number): Coordinates {
  const head = Math.floor(index / rows);
  return { batch: Math.floor(head / heads), head: head % heads, query: index % rows };
}

/** Coordinates of flat element `index` in [batch, heads, queries, columns]. */
export function elementAt(shape: ProblemShape, index: number): Required<Coordinates> {
  const { heads, queries, vDim } = shape;
  return { ...rowAt(heads, queries, Math.floor(index / vDim)), column: index % vDim };
}

/** Coordinates of flat element `index` of a quantity; a number of a row has no column. */
export function placeOf(quantity: Quantity, shape: ProblemShape, index: number): Coordinates {
  const [, heads, rows] = quantity.axes;
  const columns = rowElements(quantity, shape);
  const at = rowAt(shape[heads], shape[rows], Math.floor(index / columns));
  return quantity.row === 'vector' ? { ...at, column: index % columns } : at;
}

/** "head 3, query 17, column 5", with the batch when there is more than one. */
export function describePlace(at: Coordinates): string {
  const batch = at.batch === 0 ? '' : `batch ${at.batch}, `;
  const column = at.column === undefined ? '' : `, column ${at.column}`;
  return `${batch}head ${at.head}, query ${at.query}${column}`;
}
