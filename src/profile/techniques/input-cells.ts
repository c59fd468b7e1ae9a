import { formats, nextDown, nextUp, smallestNormal } from '../../formats/index.js';
import type { Cell, Domain } from '../cells.js';
import { ordinalOfBits, ordinalOfValue } from '../float32-order.js';

/** An end of a cell: a number that belongs to the cell, or one just outside it. */
type CellEnd = number | { readonly beyond: number };

/** The end of a cell that is next to a number but excludes it. */
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

const smallest = smallestNormal(formats.fp32);
const largest = formats.fp32.maxFinite;
/** The largest |x| for which 1 + x and, in every degree, 1 + c1·x round to 1. */
const tiny = 2 ** -25;

/** Every fp32 input of an exp2, cut where FlashAttention-4's or the hardware's behaviour changes. */
export const exp2Cells: readonly Cell[] = [
  nanCells.negative,
  cellOf('-inf', [-Infinity, -Infinity], '+0'),
  cellOf('finite x <= -127', [-largest, -127], 'at most 2^-127'),
  cellOf('-127 < x < -126', [beyond(-127), beyond(-126)], '2^-127 to 2^-126, subnormal', true),
  cellOf('-126 <= x < -2^-25', [-126, beyond(-tiny)], '2^x', true),
  cellOf('-2^-25 <= x <= -2^-126', [-tiny, -smallest], 'less than 2.1e-8 below 1', true),
  cellOf('x < 0 subnormal', [beyond(-smallest), beyond(-0)], 'less than 1e-38 below 1', true),
  cellOf('-0', [-0, -0], '1', true),
  cellOf('+0', [0, 0], '1', true),
  cellOf('x > 0 subnormal', [beyond(0), beyond(smallest)], 'less than 1e-38 above 1', true),
  cellOf('2^-126 <= x <= 2^-25', [smallest, tiny], 'less than 2.1e-8 above 1', true),
  cellOf('2^-25 < x <= 127', [beyond(tiny), 127], '2^x', true),
  cellOf('127 < x < 128', [beyond(127), beyond(128)], '2^127 to 2^128', true),
  cellOf('finite x >= 128', [128, largest], 'at least 2^128'),
  cellOf('+inf', [Infinity, Infinity], '+inf'),
  nanCells.positive,
];

const within =
  (from: number, to: number) =>
  ({ first, last }: Cell): boolean =>
    first >= ordinalOfValue(from) && last <= ordinalOfValue(to);

/** Inputs that a softmax with its maximum subtracted gives the exp2: both zeros included. */
export const softmaxDomain: Domain = { label: '-126 <= x <= 0', has: within(-126, 0) };

/** The domains for which errors of an exp2 are reported. */
export const exp2Domains: readonly Domain[] = [
  softmaxDomain,
  { label: '0 < x <= 127', has: within(2 ** -149, 127) },
  { label: '-127 < x < -126', has: within(-127, -126 - 2 ** -17) },
  { label: '127 < x < 128', has: within(127 + 2 ** -17, 128) },
];
