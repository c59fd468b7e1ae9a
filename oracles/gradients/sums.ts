import { formats, ulp } from '../../src/formats/index.js';
import { gamma, tileRows } from '../attention/operand.js';
import type { Accuracy } from '../attention/row.js';

const u = 2 ** -53;
const slack = 1 + 2 ** -5;

/** Exact values with a radius and the scale that their errors live on, element by element. */
export interface Gradient {
  readonly values: Float64Array;
  /** |value − exact| ≤ radius; 0 where the value is NaN or infinite, or nothing adds to it. */
  readonly radius: Float64Array;
  /** The sum of the magnitudes of the element's terms: see `gradientOracle`. */
  readonly magnitude: Float64Array;
}

/** Sums of products, row by row, from which a gradient is made. */
export interface GradientSums {
  readonly rows: number;
  readonly dim: number;
  readonly sum: Float64Array;
  /** Σ of the sizes of the terms. */
  readonly size: Float64Array;
  /** Σ of the errors of the terms, but for their sum's roundings and underflow. */
  readonly error: Float64Array;
  /** Per row: number of additions; 0 for an exact zero. */
  readonly additions: Float64Array;
  /** Per row: Σ of the largest errors of terms by underflow, for a factor of 1. */
  readonly floor: Float64Array;
}

export function emptySums(rows: number, dim: number): GradientSums {
  const matrix = () => new Float64Array(rows * dim);
  return {
    rows,
    dim,
    sum: matrix(),
    size: matrix(),
    error: matrix(),
    additions: new Float64Array(rows),
    floor: new Float64Array(rows),
  };
}

/** A tile of a product as the engine leaves it, with the errors of its factors. */
export interface TileOfSums {
  readonly sum: Float64Array;
  readonly size: Float64Array;
  /** Elements from one row of the two to the next. */
  readonly stride: number;
  /** Error of the terms relative to their size: of each row, or the largest of all. */
  readonly relative: (row: number) => number;
  /** Per row: Σ of the absolute errors of its factors, and the floor of each. */
  readonly absolute: Float64Array;
  readonly floor: (row: number) => number;
  /** Per column: the largest other factor. */
  readonly largest: Float64Array;
}

/**
 * Adds row `from` of a tile to row `to` of the sums. A term's error is relative · its size and absolute · the other
 * factor; the roundings of the sums are `finishSums`'.
 */
export function addRow(sums: GradientSums, to: number, tile: TileOfSums, from: number): void {
  const { dim } = sums;
  const relative = tile.relative(from);
  const absolute = tile.absolute[from];
  for (let c = 0, at = to * dim, of = from * tile.stride; c < dim; c++, at++, of++) {
    sums.sum[at] += tile.sum[of];
    sums.size[at] += tile.size[of];
    sums.error[at] += relative * tile.size[of] + absolute * tile.largest[c];
  }
  sums.additions[to]++;
  sums.floor[to] += tile.floor(from);
}

/** The largest magnitude of each column of some rows. */
export function largestOfColumns(values: Float64Array, dim: number): Float64Array {
  const largest = new Float64Array(dim);
  for (let at = 0; at < values.length; at += dim)
    for (let c = 0; c < dim; c++) largest[c] = Math.max(largest[c], Math.abs(values[at + c]));
  return largest;
}

/** An upper bound on the sum of roundings of many terms that underflow: no radius has to be below it. */
const underflowFloor = 2 ** -1040;

/** Whether a radius is within `accuracy`. */
export function isAccurateElement(
  value: number,
  radius: number,
  magnitude: number,
  accuracy: Accuracy,
): boolean {
  const format = formats[accuracy.outputFormat];
  const allowed = Math.max(
    accuracy.ulpFraction * ulp(format, Math.min(Math.abs(value), format.maxFinite)),
    accuracy.magnitudeFraction * magnitude,
    2 ** -52 * Math.abs(value),
    underflowFloor,
  );
  return radius <= allowed && radius < Infinity;
}

/** Settings for turning sums into a gradient. */
export interface Finish {
  /** Factor of the sums. */
  readonly scale: number;
  /** Per column: the largest other factor. */
  readonly largest: Float64Array;
  readonly accuracy: Accuracy;
}

/**
 * Sums times a factor, as a gradient, written in place of them.
 * @returns the rows with an element that misses the wanted accuracy, apart from underflow
 */
export function finishSums(
  sums: GradientSums,
  { scale, largest, accuracy }: Finish,
): { readonly gradient: Gradient; readonly inaccurate: number[] } {
  const { rows, dim, sum, size, error } = sums;
  const factor = Math.abs(scale);
  const inaccurate: number[] = [];
  for (let row = 0; row < rows; row++) {
    const additions = sums.additions[row];
    if (additions === 0) continue;
    const ofSum = gamma(tileRows + 2 + additions) * slack;
    let isAccurate = true;
    for (let c = 0, at = row * dim; c < dim; c++, at++) {
      const value = scale * sum[at];
      const magnitude = factor * size[at];
      const radius = factor * (error[at] + ofSum * size[at]) * slack + 2 * u * Math.abs(value);
      isAccurate &&= isAccurateElement(value, radius, magnitude, accuracy);
      const floor = factor * sums.floor[row] * largest[c] * slack + 2 ** -1068 * additions;
      sum[at] = value;
      size[at] = magnitude;
      error[at] = magnitude === 0 && largest[c] === 0 ? 0 : radius + floor;
    }
    if (!isAccurate) inaccurate.push(row);
  }
  return { gradient: { values: sum, radius: error, magnitude: size }, inaccurate };
}

/** The row of a head's key in dK and dV: −1 for one that is not wanted. */
type KeyPlaces = (key: number) => number;

/** Derivatives by scores, of a tile of rows and keys: dS, before a softcap's slope. */
export interface DerivativeTile {
  readonly firstKey: number;
  /** [64 × 64] each: dS and P·(|dP| + Σ P|dP|). */
  readonly derivatives: Float64Array;
  readonly scales: Float64Array;
  /** [64 × 64]: P, 0 for unseen keys. */
  readonly weights: Float64Array;
}

/** Targets of the second pass; null for those not wanted. */
export interface TileTargets {
  /** dQ of one head. */
  readonly dq: GradientSums | null;
  /** dK and dV of a head of K and V, both or none. */
  readonly keys: { readonly dk: GradientSums; readonly dv: GradientSums } | null;
  readonly placeOf: KeyPlaces;
  readonly visit: ((tile: DerivativeTile) => void) | null;
}
