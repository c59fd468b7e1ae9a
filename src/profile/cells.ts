import { formats, nextDown, nextUp } from '../formats/index.js';
import { RequestError } from '../request-error.js';
import type { Slice } from './error-plan.js';
import { ordinalOfValue, valueOfOrdinal, type Ordinal } from './float32-order.js';

/** Consecutive fp32 inputs at which a function behaves alike. */
export interface Cell {
  readonly label: string;
  readonly first: Ordinal;
  readonly last: Ordinal;
  /** Whether the exact function has a finite value to measure errors against. */
  readonly isMeasured: boolean;
  /** The value of the exact function in the cell, in words or as a formula. */
  readonly exact: string;
}

/** Cells whose errors are reported together. */
export interface Domain {
  readonly label: string;
  /** Whether a cell belongs to the domain. */
  readonly has: (cell: Cell) => boolean;
}

/** A range of inputs, including both ends. */
export interface InputRange {
  readonly from?: number;
  readonly to?: number;
}

/** Inputs per slice: few enough for an even load, and all of one binade. */
const sliceInputs = 2 ** 20;

/** The ordinals of the fp32 numbers in a range of real numbers. */
export function ordinalsOf(range: InputRange): { readonly first: Ordinal; readonly last: Ordinal } {
  const { from = -Infinity, to = Infinity } = range;
  const { fp32 } = formats;
  const [near, far] = [Math.fround(from), Math.fround(to)];
  const low = near < from ? nextUp(fp32, near) : near;
  const high = far > to ? nextDown(fp32, far) : far;
  // Both zeros belong to a range that begins or ends with either.
  return {
    first: ordinalOfValue(low === 0 ? -0 : low),
    last: ordinalOfValue(high === 0 ? 0 : high),
  };
}

/**
 * The cells cut to a range; those outside are left out. Without a range, all cells, including NaNs.
 * @throws RequestError for a range without an input of any measured cell
 */
export function cutCells(cells: readonly Cell[], range: InputRange): readonly Cell[] {
  if (range.from === undefined && range.to === undefined) return cells;
  const { first, last } = ordinalsOf(range);
  const cut = cells
    .map((cell) => ({
      ...cell,
      first: Math.max(cell.first, first),
      last: Math.min(cell.last, last),
    }))
    .filter((cell) => cell.first <= cell.last);
  if (cut.some(({ isMeasured }) => isMeasured)) return cut;
  const measured = cells.filter(({ isMeasured }) => isMeasured);
  const limits = [measured[0].first, measured[measured.length - 1].last].map(valueOfOrdinal);
  throw new RequestError(
    `no fp32 input from ${range.from ?? '-Infinity'} to ${range.to ?? 'Infinity'} has an error to measure; give --from and --to between ${limits[0]} and ${limits[1]}, the smaller first`,
  );
}

/** The golden section: neighbours in the order of work are far apart in the range. */
const stride = (Math.sqrt(5) - 1) / 2;

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/** The elements in a mixed order, so that progress so far predicts the remaining time. */
function mixed<T>(elements: readonly T[]): T[] {
  const { length } = elements;
  let step = Math.max(1, Math.round(length * stride));
  while (greatestCommonDivisor(step, length) !== 1) step++;
  return elements.map((_, i) => elements[(i * step) % length]);
}

/** The cells cut at multiples of 2^20 ordinals, in an order that mixes expensive and cheap slices. */
export function slicesOf(cells: readonly Cell[]): Slice[] {
  const slices: Slice[] = [];
  for (const [cell, { first, last, isMeasured }] of cells.entries())
    for (let start = first; start <= last;) {
      const next = (Math.floor(start / sliceInputs) + 1) * sliceInputs;
      const end = Math.min(next - 1, last);
      slices.push({ cell, first: start, last: end, isMeasured });
      start = end + 1;
    }
  return mixed(slices);
}
