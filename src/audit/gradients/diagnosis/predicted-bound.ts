import { formats, ulp, unitRoundoff, type FormatName } from '../../../formats/index.js';
import type { GradientBound } from '../bounds/index.js';

/** Bounds of a predicted gradient, as those of an exact one. */
export type PredictedBound = Pick<GradientBound, 'total' | 'systematic' | 'known' | 'deviation'>;

const names = ['total', 'systematic', 'known', 'deviation'] as const;

/** A gradient's exact values, their prediction, and the bounds of the exact ones. */
export interface PredictedRows {
  readonly exact: Float64Array;
  readonly predicted: Float64Array;
  readonly bound: PredictedBound;
  /** The format of the gradient. */
  readonly format: FormatName;
  readonly columns: number;
  /** The sizes that elements are sums of, exact and predicted, where they are known. */
  readonly sizes: readonly [exact: Float64Array, predicted: Float64Array] | null;
}

/** Length of a row of numbers. */
function lengthOf(values: Float64Array, first: number, end: number): number {
  let squares = 0;
  for (let i = first; i < end; i++) squares += values[i] ** 2;
  return Math.sqrt(squares);
}

/** Roundings to the format of the gradient that a term may have: of P or dS, of D, of the sum. */
const roundingsOfTerm = 4;

/** The relative distance within which a number counts as the exact one. */
const sameness = 2 ** -20;

/** Number of rows that the usual size of bounds is taken from, at most. */
const sampledRows = 256;

type PredictedShares = Readonly<Record<(typeof names)[number], number>>;

/** The median over rows of the bounds' lengths beside that of the exact values; 0 where there is none. */
function usualShares({ exact, bound, columns }: PredictedRows): PredictedShares {
  const rows = exact.length / Math.max(columns, 1);
  const step = Math.max(1, Math.floor(rows / sampledRows));
  const shareOf = (of: Float64Array) => {
    const shares: number[] = [];
    for (let row = 0; row < rows; row += step) {
      const [first, end] = [row * columns, (row + 1) * columns];
      const share = lengthOf(of, first, end) / lengthOf(exact, first, end);
      if (Number.isFinite(share)) shares.push(share);
    }
    return shares.sort((a, b) => a - b)[shares.length >> 1] ?? 0;
  };
  return Object.fromEntries(
    names.map((name) => [name, shareOf(bound[name])]),
  ) as unknown as PredictedShares;
}

/**
 * Bounds for rows from element `first` to `end` of a predicted gradient: roundings grow as the sizes that an element is a sum of,
 * which may have grown by one term; where these are not known, as the row does. Rows that are exactly 0, which have no bounds,
 * get the usual ones relative to a row's length.
 * @param least the smallest factor of the bounds
 */
export function boundOfPrediction(
  of: PredictedRows,
  least: number,
  [first, end]: readonly [first: number, end: number] = [0, of.exact.length],
): PredictedBound {
  const { exact, predicted, bound, format, columns, sizes } = of;
  const made = Object.fromEntries(
    names.map((name) => [name, bound[name].slice(first, end)]),
  ) as unknown as PredictedBound;
  let usual: PredictedShares | null = null;
  // Elements without terms have no bounds: where sizes are known, a few roundings of each term are allowed.
  const ofNothing = (name: (typeof names)[number], i: number, ofLength: number) =>
    sizes === null ? ofLength : Math.max(ofLength, name === 'total' ? unit * sizes[1][i] : 0);
  const unit = roundingsOfTerm * unitRoundoff(formats[format]);
  for (let at = first; at < end; at += columns) {
    const [length, own] = [predicted, exact].map((x) => lengthOf(x, at, at + columns));
    const ofRow = Math.max(length / own, least);
    if (ofRow === Infinity) usual ??= usualShares(of);
    for (let i = at; i < at + columns; i++) {
      const grown = sizes === null ? ofRow : Math.max(sizes[1][i] / sizes[0][i], least);
      // A row that is 0 by cancellation has bounds of its own.
      const growth = ofRow === Infinity && bound.total[i] === 0 ? ofRow : grown;
      if (growth === 1 || Number.isNaN(growth)) continue;
      for (const name of names)
        made[name][i - first] =
          growth === Infinity
            ? ofNothing(name, i, ((usual?.[name] ?? 0) * length) / Math.sqrt(columns))
            : growth * bound[name][i];
      if (sizes !== null && growth > 1 && growth < Infinity)
        made.deviation[i - first] = Math.hypot(
          bound.deviation[i],
          ((growth - 1) * bound.total[i]) / Math.sqrt(3),
        );
    }
  }
  // Where P or dS is rounded in this format, the rounding of a factor that has grown is not known, though that of the exact one may
  // be.
  if (sizes !== null)
    for (let i = first; i < end; i++) {
      const more = unitRoundoff(formats[format]) * (sizes[1][i] - sizes[0][i]);
      if (more > 0 && more < Infinity) made.total[i - first] += more;
    }
  // The rounding of an output that is another number is not known, though that of the exact one may be.
  for (let i = first; i < end; i++) {
    const change = Math.abs(predicted[i] - exact[i]);
    if (!(change > sameness * Math.abs(exact[i]) && Number.isFinite(change))) continue;
    const half = ulp(formats[format], predicted[i]) / 2;
    made.total[i - first] += half;
    made.deviation[i - first] = Math.hypot(made.deviation[i - first], half / Math.sqrt(3));
  }
  return made;
}
