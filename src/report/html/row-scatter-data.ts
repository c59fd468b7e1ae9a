import type { JudgedElements } from '../../audit/index.js';

/** One row: a statistic of its weights, and its largest |error| in the output's unit. */
export interface RowPoint {
  /** Index of the row, flat over [batch, heads, queries]. */
  readonly row: number;
  readonly x: number;
  readonly error: number;
}

/** Rows with statistics that lie close together. */
export interface RowGroup {
  readonly low: number;
  readonly high: number;
  readonly rows: number;
  readonly medianError: number;
  readonly largestError: number;
}

/** The error of rows against one statistic. */
export interface RowScatter {
  readonly name: 'lag' | 'largest weight' | 'entropy' | 'visible keys';
  /** Number of rows with a statistic and a finite error. */
  readonly rows: number;
  /** Rows that are drawn: all, or one of each cell of a grid and the rows with the largest errors. */
  readonly points: readonly RowPoint[];
  /** Up to eight groups of about the same number of rows, in ascending order of the statistic. */
  readonly groups: readonly RowGroup[];
}

/** Maximum number of points of one scatter. */
const mostPoints = 900;
/** Number of rows that are kept for being the worst. */
const worstKept = 16;
const mostGroups = 8;
/** The grid of a scatter that is thinned out. */
const [gridColumns, cellsPerOctave] = [40, 2];

/** The largest finite |error| of each row; NaN for rows without a finite element. */
function rowErrors({
  reference,
  outputs: {
    out: { values: out },
  },
}: JudgedElements): Float64Array {
  const { out: exactOut, lse: exactLse } = reference.quantities;
  const { vDim } = reference.shape;
  return Float64Array.from({ length: exactLse.values.length }, (_, row) => {
    let largest = NaN;
    for (let i = row * vDim; i < (row + 1) * vDim; i++) {
      const error = Math.abs(out[i] - exactOut.values[i]);
      if (Number.isFinite(error) && !(error <= largest)) largest = error;
    }
    return largest;
  });
}

/** One row of each cell of a grid, linear in x and logarithmic in the error, and the worst rows. */
function thinned(rows: Int32Array, x: ArrayLike<number>, errors: Float64Array): number[] {
  if (rows.length <= mostPoints) return [...rows];
  const worst = rows.slice().sort((a, b) => errors[b] - errors[a]);
  let [low, high] = [Infinity, -Infinity];
  for (const row of rows) [low, high] = [Math.min(low, x[row]), Math.max(high, x[row])];
  const cells = new Map<string, number>();
  for (const row of rows) {
    const column = high > low ? Math.floor(((x[row] - low) / (high - low)) * gridColumns) : 0;
    const cell = `${column} ${Math.floor(cellsPerOctave * Math.log2(errors[row]))}`;
    if (!cells.has(cell)) cells.set(cell, row);
  }
  const kept = new Set(worst.slice(0, worstKept));
  const others = [...cells.values()];
  const step = Math.max(1, Math.ceil(others.length / (mostPoints - worstKept)));
  for (let i = 0; i < others.length; i += step) kept.add(others[i]);
  return [...kept];
}

/** Groups of neighbours in the order of the statistic; rows with the same statistic are never separated. */
function grouped(rows: Int32Array, x: ArrayLike<number>, errors: Float64Array): RowGroup[] {
  const sorted = rows.slice().sort((a, b) => x[a] - x[b]);
  const groups: RowGroup[] = [];
  for (let begin = 0; begin < sorted.length;) {
    const share = Math.ceil((sorted.length - begin) / Math.max(1, mostGroups - groups.length));
    let end = begin + share;
    while (end < sorted.length && x[sorted[end]] === x[sorted[end - 1]]) end++;
    const members = sorted.subarray(begin, end);
    const sizes = Float64Array.from(members, (row) => errors[row]).sort();
    groups.push({
      low: x[members[0]],
      high: x[members.at(-1)!],
      rows: members.length,
      medianError: sizes[(sizes.length - 1) >> 1],
      largestError: sizes.at(-1)!,
    });
    begin = end;
  }
  return groups;
}

/**
 * The largest error of each row against statistics of its weights: the lag of the maximum in use (for a
 * declared kernel that lets it lag) or else the largest weight (log2), their entropy (bits), and the
 * number of keys that the row sees. Rows without weights, or without a finite element, are left out.
 */
export function createRowScatters(judged: JudgedElements): RowScatter[] {
  const {
    maximum,
    quantities: {
      lse: { values: lse },
    },
  } = judged.reference;
  const { entropy, lag, visibleKeys } = judged.rows;
  const errors = rowErrors(judged);
  const all = Int32Array.from(errors.keys());
  const scatter = (name: RowScatter['name'], x: ArrayLike<number>): RowScatter => {
    const rows = all.filter(
      (row) => Number.isFinite(x[row]) && Number.isFinite(errors[row]) && visibleKeys[row] > 0,
    );
    return {
      name,
      rows: rows.length,
      points: thinned(rows, x, errors).map((row) => ({ row, x: x[row], error: errors[row] })),
      groups: grouped(rows, x, errors),
    };
  };
  return [
    lag === null
      ? scatter(
          'largest weight',
          Float64Array.from(lse, (value, row) => (maximum[row] - value) * Math.LOG2E),
        )
      : scatter('lag', lag),
    scatter('entropy', entropy),
    scatter('visible keys', visibleKeys),
  ];
}
