import { problemShape } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import type { AttentionContract } from '../launch/contract-of-launch.js';
import type { RowContents } from './row-contents.js';

/** Two rows of an output that stand for one another, by their elements. */
export interface RowPair {
  readonly here: readonly number[];
  readonly there: readonly number[];
}

/** The rows of an output of two launches. */
export interface PairedRows {
  readonly pairs: readonly RowPair[];
  /** Rows of this launch whose query, keys and values the other has not. */
  readonly unpaired: number;
}

/** A launch whose rows are known by what they are asked. */
export interface KnownRows {
  readonly contract: AttentionContract;
  readonly contents: RowContents;
}

/** Rows of the last axis, of two tensors of one size; a tensor of one axis has rows of one. */
export function pairInOrder(shape: readonly number[]): PairedRows {
  const length = shape.length > 1 ? shape[shape.length - 1] : 1;
  const elements = shape.reduce((product, size) => product * size, 1);
  const pairs = Array.from({ length: elements / Math.max(1, length) }, (_, row) => {
    const here = Array.from({ length }, (__, i) => row * length + i);
    return { here, there: here };
  });
  return { pairs, unpaired: 0 };
}

/** The rows of a quantity that pairs by contents: heads, rows, columns, and what a row of a head counted over the batch is asked. */
interface RowsOfQuantity {
  readonly heads: number;
  readonly rows: number;
  readonly columns: number;
  readonly keyOf: (head: number, row: number) => string;
}

/** The rows of one of `pairedQuantities`. */
function rowsOfQuantity(
  { contract: { problem }, contents }: KnownRows,
  quantity: string,
): RowsOfQuantity {
  const { heads, kvHeads, queries, keys, qkDim, vDim } = problemShape(problem);
  const ofQueries = { heads, rows: queries, keyOf: contents.keyOf };
  const ofKeys = { heads: kvHeads, rows: keys, keyOf: contents.gradientKeyOf };
  const known: Readonly<Record<string, RowsOfQuantity>> = {
    out: { ...ofQueries, columns: vDim },
    lse: { ...ofQueries, columns: 1 },
    dq: { ...ofQueries, columns: qkDim, keyOf: contents.queryKeyOf },
    dk: { ...ofKeys, columns: qkDim },
    dv: { ...ofKeys, columns: vDim },
  };
  return known[quantity];
}

/** The quantities whose rows pair by contents. */
export const pairedQuantities: readonly string[] = ['out', 'lse', 'dq', 'dk', 'dv'];

/** The elements of each row of an output, by what the row is asked. */
function elementsByRow(
  known: KnownRows,
  quantity: string,
): readonly (readonly [key: string, elements: readonly number[]])[] {
  const { problem, outputs } = known.contract;
  const { batch } = problemShape(problem);
  const { heads, rows, columns, keyOf } = rowsOfQuantity(known, quantity);
  const { elementOf } = outputs.find(({ name }) => name === quantity)!;
  return Array.from({ length: batch * heads * rows }, (_, i) => {
    const [head, row] = [Math.floor(i / rows), i % rows];
    const elements = Array.from({ length: columns }, (__, column) =>
      elementOf(Math.floor(head / heads), head % heads, row, column),
    );
    return [keyOf(head, row), elements];
  });
}

/**
 * The rows of O, the LSE or a gradient of two launches whose query, visible keys and values are the same, wherever they lie: of dQ with
 * the same given for the query, of dK and dV with the same queries that see the key.
 *
 * @throws RequestError where no row is
 */
export function pairByContents(here: KnownRows, there: KnownRows, quantity: string): PairedRows {
  const others = new Map([...elementsByRow(there, quantity)].reverse());
  const rows = elementsByRow(here, quantity);
  const pairs = rows.flatMap(([key, elements]) => {
    const other = others.get(key);
    return other === undefined ? [] : [{ here: elements, there: other }];
  });
  if (rows.length > 0 && pairs.length === 0)
    throw new RequestError(
      `no row of ${quantity} has the query, keys and values of one of the other launch; give launches that share rows`,
    );
  return { pairs, unpaired: rows.length - pairs.length };
}
