import type { ProblemShape } from './problem.js';

/** A size of a problem that a tensor has an axis of. */
export type Axis = 'batch' | 'heads' | 'kvHeads' | 'queries' | 'keys' | 'qkDim' | 'vDim';

/**
 * One named result of an attention kernel: what a kernel gives, an oracle computes, bounds are of and an
 * audit judges. All that tests, verdicts and reports need to know of it is here: see docs/extending.md, "To
 * add an output".
 */
export interface Quantity {
  /** Of its tensor, and of its member in every record by quantity; unknown names are the user's own. */
  readonly name: string;
  /** Of the canonical tensor: batch, heads, rows, and where a row is a vector its elements. */
  readonly axes:
    | readonly [batch: Axis, heads: Axis, rows: Axis]
    | readonly [batch: Axis, heads: Axis, rows: Axis, elements: Axis];
  /**
   * `vector`: reports give errors in ulps of the stored format and relative to the magnitude, and statistics of rows
   * (spread, slope, bias, …) are made. `number`: a row has one number, whose error is absolute.
   */
  readonly row: 'vector' | 'number';
  /** Its name in prose ("the output"), in tables ("output"), and of its parts ("elements of dQ"). */
  readonly prose: string;
  readonly label: string;
  readonly parts: string;
  /** The unit of its errors; and the magnitude that the errors of a vector's elements are relative to. */
  readonly unit: string;
  readonly magnitude: string;
  /** Whether reports say so where a kernel does not give it. */
  readonly isExpected: boolean;
  /** The command line's option for the file that it is in, in camel case: `--output` by `output`. */
  readonly option: string;
}

/** O, in the output's own format. */
const out = {
  name: 'out',
  axes: ['batch', 'heads', 'queries', 'vDim'],
  row: 'vector',
  prose: 'the output',
  label: 'output',
  parts: 'elements',
  unit: 'output units',
  magnitude: 'Σ p|v|',
  isExpected: true,
  option: 'output',
} as const satisfies Quantity;

/** The natural logarithm of the sum of a row's exponentials. */
const lse = {
  name: 'lse',
  axes: ['batch', 'heads', 'queries'],
  row: 'number',
  prose: 'the LSE',
  label: 'LSE',
  parts: 'rows',
  unit: 'natural logarithm',
  magnitude: '',
  isExpected: true,
  option: 'lse',
} as const satisfies Quantity;

/** The quantities that are judged, in the order in which reports tell of them. */
export const quantities = [out, lse] as const satisfies readonly Quantity[];

/** The name of one of {@link quantities}. */
export type QuantityName = (typeof quantities)[number]['name'];

/** Something of each quantity, by name; the forward's are always there. */
export interface ByQuantity<T> {
  readonly out: T;
  readonly lse: T;
  readonly [name: string]: T | undefined;
}

/** The shape of a quantity's canonical tensor. */
export function quantityShape({ axes }: Quantity, shape: ProblemShape): readonly number[] {
  return axes.map((axis) => shape[axis]);
}

/** How many elements a row of a quantity has. */
export function rowElements({ axes: [, , , elements] }: Quantity, shape: ProblemShape): number {
  return elements === undefined ? 1 : shape[elements];
}

/** Something of each tensor that a kernel wrote, by quantity; null for what it does not give. */
export interface WrittenOutputs<T> {
  readonly out: T;
  readonly lse: T | null;
  readonly [name: string]: T | null;
}
