import { techniques, type Technique } from '../../../kernels/index.js';
import type { ByQuantity } from '../../problem/index.js';
import { tileRows } from './memory.js';

/** A number per technique and element (or row). */
export type ByTechnique = Readonly<Record<Technique, Float64Array>>;

/** Names of `CombinedBounds`: bounds of all techniques together. */
export const combinations = ['total', 'systematic', 'known', 'deviation'] as const;

/** Bounds of every element, or of every row, all techniques together. */
export interface CombinedBounds {
  /** Worst case, the rounding of an output and the oracle's own radius included. */
  readonly total: Float64Array;
  /** Worst case of the part that neither averages out nor is known: see docs/theory/bounds.md, "The spread". */
  readonly systematic: Float64Array;
  /** The magnitude of the sum of the roundings that follow from the problem. */
  readonly known: Float64Array;
  /** Root mean square of the error, without the systematic part: √(known² + variance of the rest). */
  readonly deviation: Float64Array;
}

/** Bounds of every element, or of every row. */
export interface Bounds extends CombinedBounds {
  /** Worst case of each technique alone. */
  readonly techniques: ByTechnique;
}

/** The bounds of up to 64 rows of one head. Arrays are used again from call to call. */
export interface RowsBound {
  /** Counted over [batch, heads, queries]. */
  readonly firstRow: number;
  readonly rows: number;
  /** [rows]: rows of one number may err alike, others err independently. */
  readonly unit: Int32Array;
  /** [rows]: 1 for a row most of whose weights round alike, 0 for others: see `isClustered`. */
  readonly clustered: Uint8Array;
  /**
   * Bounds by quantity: of the output [rows × vDim], in its unit; of the LSE [rows], natural logarithms,
   * before it is stored.
   */
  readonly quantities: ByQuantity<Bounds>;
}

/** Bounds of `length` elements or rows, all 0. */
export function createCombinedBounds(length: number): CombinedBounds {
  const numbers = () => new Float64Array(length);
  return {
    total: numbers(),
    systematic: numbers(),
    known: numbers(),
    deviation: numbers(),
  };
}

/** Bounds of `length` elements or rows with the parts of the techniques, all 0. */
export function createBounds(length: number): Bounds {
  const parts = techniques.map((name) => [name, new Float64Array(length)]);
  return { techniques: Object.fromEntries(parts) as ByTechnique, ...createCombinedBounds(length) };
}

function fill(bounds: Bounds, value: number, begin: number, end: number): void {
  for (const technique of techniques) bounds.techniques[technique].fill(value, begin, end);
  for (const name of combinations) bounds[name].fill(value, begin, end);
}

/** Arrays for the bounds of 64 rows, and a way to say the same of a whole row. */
export function createRowsBounds(vDim: number) {
  const out = createBounds(tileRows * vDim);
  const lse = createBounds(tileRows);
  return {
    out,
    lse,
    unit: new Int32Array(tileRows),
    clustered: new Uint8Array(tileRows),
    fillRow: (row: number, value: number): void => {
      fill(out, value, row * vDim, (row + 1) * vDim);
      fill(lse, value, row, row + 1);
    },
  };
}
