import type { ProblemShape } from './shape.js';

/** A size of a problem that a tensor has an axis of. */
export type Axis = 'batch' | 'heads' | 'kvHeads' | 'queries' | 'keys' | 'qkDim' | 'vDim';

/**
 * One named result of an attention kernel: what a kernel may give, an oracle computes, bounds are of and an
 * audit judges. All that the tests and reports need to know of it is here: see CONTRIBUTING.md, "To add an
 * output".
 */
export interface Quantity {
  /** Of the tensor, of the members of records by quantity, and in reports. */
  readonly name: string;
  /** Of the canonical tensor; the last one counts a row's elements where a row is a vector. */
  readonly axes: readonly Axis[];
  /**
   * `vector`: a row has an element for each of the last axis, whose errors are told in ulps of the stored
   * format and beside their magnitude, and which the statistics of rows (spread, slope, bias, …) are made
   * of. `number`: a row has one number, whose error is absolute.
   */
  readonly row: 'vector' | 'number';
  /** Its name in prose ("the output"), and in tables ("output"). */
  readonly prose: string;
  readonly label: string;
  /** What errors are in, in words. */
  readonly unit: string;
}

/** O, in the problem's output format. */
const out: Quantity = {
  name: 'out',
  axes: ['batch', 'heads', 'queries', 'vDim'],
  row: 'vector',
  prose: 'the output',
  label: 'output',
  unit: 'output units',
};

/** The natural logarithm of the row sum of exponentials. */
const lse: Quantity = {
  name: 'lse',
  axes: ['batch', 'heads', 'queries'],
  row: 'number',
  prose: 'the LSE',
  label: 'LSE',
  unit: 'natural logarithm',
};

/** The quantities that are judged, in the order in which reports tell of them. */
export const quantities: readonly Quantity[] = [out, lse];

/** Something of each quantity; the forward's are always there. */
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
export function rowElements({ axes, row }: Quantity, shape: ProblemShape): number {
  return row === 'vector' ? shape[axes[axes.length - 1]] : 1;
}
