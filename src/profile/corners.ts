import type { CandidateName } from './functions.js';
import { bitsOfOrder, isConstant } from './result-classes.js';
import type { ErrorSweep, FunctionCell } from './error-sweep.js';
import { valueOfBits } from './float32-order.js';
import { hexadecimal } from './input-view.js';

/** The results of a function over all inputs of a corner. */
export interface CornerResult {
  readonly name: CandidateName;
  /** The one bit pattern of all results; null when they differ or are NaN. */
  readonly constantBits: string | null;
  /** The smallest and largest result that is not NaN; null when all are NaN. */
  readonly least: number | null;
  readonly most: number | null;
  readonly zeros: number;
  readonly subnormals: number;
  readonly infinities: number;
  readonly nans: number;
}

/** The results of all functions at a corner. */
export interface CornerReport {
  readonly label: string;
  readonly inputs: number;
  /** The value of the exact function at the corner. */
  readonly exact: string;
  readonly results: readonly CornerResult[];
}

function cornerResult(name: CandidateName, { classes }: FunctionCell): CornerResult {
  const { zeros, subnormals, infinities, nans, least, most } = classes;
  const hasNumbers = least <= most;
  return {
    name,
    constantBits: isConstant(classes) ? hexadecimal(bitsOfOrder(least)) : null,
    least: hasNumbers ? valueOfBits(bitsOfOrder(least)) : null,
    most: hasNumbers ? valueOfBits(bitsOfOrder(most)) : null,
    zeros,
    subnormals,
    infinities,
    nans,
  };
}

/** The results of every function of a sweep in each of its cells. */
export function reportCorners({ plan, cells }: ErrorSweep): CornerReport[] {
  return cells.map(({ cell, functions }) => ({
    label: cell.label,
    inputs: cell.last - cell.first + 1,
    exact: cell.exact,
    results: functions.map((found, c) => cornerResult(plan.candidates[c], found)),
  }));
}
