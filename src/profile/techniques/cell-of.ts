import { formats, nextDown, nextUp } from '../../formats/index.js';
import type { Cell } from '../cells.js';
import { ordinalOfBits, ordinalOfValue } from '../float32-order.js';

/** An end of a cell: a number that belongs to it, or one that it stops short of. */
export type CellEnd = number | { readonly beyond: number };

/** The end of a cell next to, but without, a number. */
export function beyond(number: number): CellEnd {
  return { beyond: number };
}

/**
 * The cell of the fp32 numbers from one end to the other. −0 and +0 are told apart: the first number
 * above 0 is beyond +0, the last below it beyond −0.
 */
export function cellOf(
  label: string,
  [from, to]: readonly [CellEnd, CellEnd],
  exact: string,
  isMeasured = false,
): Cell {
  const first = typeof from === 'number' ? from : nextUp(formats.fp32, from.beyond);
  const last = typeof to === 'number' ? to : nextDown(formats.fp32, to.beyond);
  return {
    label,
    first: ordinalOfValue(first),
    last: ordinalOfValue(last),
    isMeasured,
    exact,
  };
}

const signBit = 2 ** 31;
const firstNan = 0x7f800001;
const lastNan = 0x7fffffff;

/** The NaNs without and with a sign, at the two ends of the order. */
export const nanCells: { readonly positive: Cell; readonly negative: Cell } = {
  negative: {
    label: 'NaN, sign set',
    first: ordinalOfBits(lastNan + signBit),
    last: ordinalOfBits(firstNan + signBit),
    isMeasured: false,
    exact: 'NaN',
  },
  positive: {
    label: 'NaN',
    first: ordinalOfBits(firstNan),
    last: ordinalOfBits(lastNan),
    isMeasured: false,
    exact: 'NaN',
  },
};
