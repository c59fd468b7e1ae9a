import type { AttentionReference } from '../../../oracles/index.js';
import { type FormatName, formats } from '../../formats/index.js';
import type { RowErrors } from './technique-bound.js';

/** Numbers a row, given whether its weights are clustered; rows of one number may err alike. */
type NumberRow = (row: number, isClustered: boolean) => number;

/** Cells and number that some rows share. */
interface NumberedRow {
  readonly cells: readonly number[];
  readonly number: number;
}

/** Whether two numbers are one; NaN is NaN. */
function isSame(a: number, b: number): boolean {
  return a === b || (Number.isNaN(a) && Number.isNaN(b));
}

/** Columns whose outputs tell rows apart. */
const comparedColumns = 4;

/**
 * Makes a function that numbers the rows of a problem by the errors that they may share, from 0. All
 * clustered rows of a head have one number, whatever their scores: their weights are alike relative to the
 * maximum, or to the sum. So have rows that are nearly equal: LSE and maximum to an ulp of the weights'
 * format, and outputs to a quarter of that, relative to Σ w|v|.
 */
export function createRowNumbers(
  reference: AttentionReference,
  weightFormat: FormatName,
): NumberRow {
  const { queries, vDim } = reference.shape;
  const fine = 2 ** Math.min(formats[weightFormat].precision, 14);
  const columns = Math.min(vDim, comparedColumns);
  /** Numbered rows by their first cell. */
  const known = new Map<number, NumberedRow[]>();
  let clustered: number | null = null;
  let head = -1;
  let next = 0;
  const cell = (x: number, size: number) => (size > 0 ? Math.round(x / size) : x);
  const cellsOf = (row: number) => {
    const cells = [
      cell(reference.quantities.lse.values[row], 1 / fine),
      cell(reference.maximum[row], 1 / fine),
    ];
    for (let at = row * vDim; at < row * vDim + columns; at++)
      cells.push(
        cell(
          reference.quantities.out.values[at],
          reference.quantities.out.magnitude[at] / (4 * fine),
        ),
      );
    return cells;
  };
  const numberOf = (cells: readonly number[]): number => {
    const [first] = cells;
    const ofFirst = known.get(first);
    const same = ofFirst?.find((one) => one.cells.every((x, i) => isSame(x, cells[i])));
    if (same !== undefined) return same.number;
    const named = { cells, number: next++ };
    if (ofFirst === undefined) known.set(first, [named]);
    else ofFirst.push(named);
    return named.number;
  };
  return (row, isClustered) => {
    const headOfRow = Math.floor(row / queries);
    if (headOfRow !== head) {
      known.clear();
      clustered = null;
    }
    head = headOfRow;
    return isClustered ? (clustered ??= next++) : numberOf(cellsOf(row));
  };
}

/** Bins finer than this, an octave: weights of long formats are alike where they are nearly equal. */
const mostBins = 2 ** 14;

/**
 * The resolution at which weights are told apart whose roundings to a format may be one number: bins per
 * octave of exponents, four to an ulp. docs/theory/bounds.md, "The spread", explains why a quarter of an ulp.
 */
export function alikeBinsPerOctave(weightFormat: FormatName): number {
  return Math.min(4 * 2 ** (formats[weightFormat].precision - 1), mostBins);
}

/** The largest number of weights that round independently in a clustered row. */
const fewIndependent = 16;

/**
 * Whether most of a row's weights share their bins with others, and few bins hold them: its error is that
 * of a few numbers, which may be the same in other such rows.
 */
export function isClustered({
  mass,
  squares,
  squaresAlike,
}: Pick<RowErrors, 'mass' | 'squares' | 'squaresAlike'>): boolean {
  return squaresAlike >= 2 * squares && fewIndependent * squaresAlike >= mass * mass;
}
