import type { ProblemShape } from './problem.js';

/** A size of a problem that is the length of a tensor's axis. */
export type Axis = 'batch' | 'heads' | 'kvHeads' | 'queries' | 'keys' | 'qkDim' | 'vDim';

/**
 * One named result of an attention kernel, which kernels produce, an oracle computes, bounds limit and an
 * audit judges. It holds all that tests, verdicts and reports need to know: see docs/guide/extending.md, "To add
 * an output".
 */
export interface Quantity {
  /** The name of its tensor, and of its member in every record by quantity; unknown names are the user's own. */
  readonly name: string;
  /** The axes of the canonical tensor: batch, heads, rows, and the elements of a row that is a vector. */
  readonly axes:
    | readonly [batch: Axis, heads: Axis, rows: Axis]
    | readonly [batch: Axis, heads: Axis, rows: Axis, elements: Axis];
  /** The word for a row in places, where it is no query and no key. */
  readonly rowWord?: 'token' | 'row';
  /**
   * `vector`: reports give errors in ulps of the stored format and relative to the magnitude, with statistics of
   * rows (spread, slope, bias, …). `number`: a row has one number, whose error is absolute.
   */
  readonly row: 'vector' | 'number';
  /** Its name in prose ("the output"), in tables ("output"), and of its parts ("elements of dQ"). */
  readonly prose: string;
  readonly label: string;
  readonly parts: string;
  /** The unit of its errors; and the magnitude that the errors of a vector's elements are relative to. */
  readonly unit: string;
  readonly magnitude: string;
  /** Whether reports mention that a kernel does not give it. */
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

/** The judged quantities, in the order of reports. */
export const quantities = [out, lse] as const satisfies readonly Quantity[];

/** The name of one of {@link quantities}. */
export type QuantityName = (typeof quantities)[number]['name'];

/** A value for each quantity, by name; the forward's are always present. */
export interface ByQuantity<T> {
  readonly out: T;
  readonly lse: T;
  readonly [name: string]: T | undefined;
}

/** The shape of a quantity's canonical tensor. */
export function quantityShape({ axes }: Quantity, shape: ProblemShape): readonly number[] {
  return axes.map((axis) => shape[axis]);
}

/** Number of elements in a row of a quantity. */
export function rowElements({ axes: [, , , elements] }: Quantity, shape: ProblemShape): number {
  return elements === undefined ? 1 : shape[elements];
}

/** A value for each tensor that a kernel wrote, by quantity; null for those that it did not write. */
export interface WrittenOutputs<T> {
  readonly out: T;
  readonly lse: T | null;
  readonly [name: string]: T | null;
}
