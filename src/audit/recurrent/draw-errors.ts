import {
  runRecurrence,
  type RecurrentArithmetic,
  type RecurrentRounding,
} from '../../../kernels/index.js';
import type { FormatName } from '../../formats/index.js';
import type {
  RecurrentGradientInputs,
  RecurrentProblem,
  RecurrentQuantityName,
} from '../../problem/index.js';
import { alikeRounding, alikeValuesOf, drawnRounding } from './drawn-rounding.js';
import type { RecurrentTest } from './recurrent-statistic.js';
import { byHead, type RecurrentRows } from './given-quantities.js';

/** Rows of one head that are judged together: from a row, counted over all heads, so many. */
export interface RowGroup {
  readonly scope: 'tile' | 'head';
  /** Counted over [batch or sequences, heads]. */
  readonly head: number;
  /** Within the head. */
  readonly firstRow: number;
  readonly rows: number;
}

/** A sum over the errors of a group of rows: with a direction, the share of it that they have, Σ e d / Σ d². */
export interface Projection {
  readonly test: RecurrentTest;
  readonly group: RowGroup;
  readonly direction: Float64Array;
}

/** A quantity that is judged, with its exact values and what its errors are projected on. */
export interface DrawnQuantity {
  readonly rows: RecurrentRows;
  readonly format: FormatName;
  readonly exact: Float64Array;
  readonly groups: readonly RowGroup[];
  readonly projections: readonly Projection[];
}

/** Sums of errors of several quantities that a correct kernel leaves at 0: coefficients by quantity, element by element. */
export type Combination = Readonly<Partial<Record<RecurrentQuantityName, Float64Array>>>;

/** The most that errors of one sense make of a quantity: sums over {@link alikeValuesOf}. */
export interface AlikeErrors {
  /** Of each element, of each group's root of the sum of squares, and of each projection. */
  readonly elements: Float64Array;
  readonly groups: Float64Array;
  readonly projections: Float64Array;
}

/** What roundings make of a quantity. */
export interface DrawnErrors {
  readonly alike: AlikeErrors;
  /** The mean square of each element's error. */
  readonly squares: Float64Array;
  /** The sum of squares of each group, by draw. */
  readonly energies: readonly Float64Array[];
  /** Each projection, by draw. */
  readonly projections: readonly Float64Array[];
}

/** Errors that a kernel of some arithmetic makes, drawn many times. */
export interface Draws {
  readonly count: number;
  readonly quantities: readonly DrawnErrors[];
  /** Each combination, by draw, and the most that errors of one sense make of it. */
  readonly combinations: readonly Float64Array[];
  readonly alike: Float64Array;
}

/** The range of a group's elements. */
export function rangeOf(
  { head, firstRow, rows }: RowGroup,
  { shape: { queries, vDim } }: RecurrentRows,
): readonly [first: number, end: number] {
  const first = (head * queries + firstRow) * vDim;
  return [first, first + rows * vDim];
}

/** The share of a direction that errors have in a group; 0 where there is no direction. */
export function project(
  errors: Float64Array,
  { group, direction }: Projection,
  rows: RecurrentRows,
): number {
  const [first, end] = rangeOf(group, rows);
  let product = 0;
  let square = 0;
  for (let i = first; i < end; i++) {
    product += errors[i] * direction[i];
    square += direction[i] * direction[i];
  }
  return square === 0 ? 0 : product / square;
}

/** The sum of a combination over the errors of all quantities. */
export function combine(
  combination: Combination,
  errors: Readonly<Partial<Record<RecurrentQuantityName, Float64Array>>>,
): number {
  let sum = 0;
  for (const [name, coefficients] of Object.entries(combination)) {
    const of = errors[name as RecurrentQuantityName];
    if (of === undefined) continue;
    for (let i = 0; i < of.length; i++) sum += coefficients[i] * of[i];
  }
  return sum;
}

/** The problem whose errors are drawn. */
export interface DrawRequest {
  readonly problem: RecurrentProblem;
  readonly gradientInputs: RecurrentGradientInputs | undefined;
  readonly quantities: readonly DrawnQuantity[];
  readonly combinations: readonly Combination[];
  /** Added to the number of a draw, which seeds it. */
  readonly seed: number;
}

/** The root of the sum of squares of a group's errors. */
function normOf(errors: Float64Array, group: RowGroup, rows: RecurrentRows): number {
  const [first, end] = rangeOf(group, rows);
  let energy = 0;
  for (let i = first; i < end; i++) energy += errors[i] * errors[i];
  return Math.sqrt(energy);
}

/** Adds one draw's errors of a quantity. */
function addDraw(
  into: DrawnErrors,
  { rows, groups, projections }: DrawnQuantity,
  errors: Float64Array,
  { draw, count }: { readonly draw: number; readonly count: number },
): void {
  for (let i = 0; i < errors.length; i++) into.squares[i] += (errors[i] * errors[i]) / count;
  groups.forEach((group, at) => {
    into.energies[at][draw] = normOf(errors, group, rows) ** 2;
  });
  projections.forEach((projection, at) => {
    into.projections[at][draw] = project(errors, projection, rows);
  });
}

/** Adds the errors of one sense that one name's values make. */
function addAlike(
  { alike }: DrawnErrors,
  { rows, groups, projections }: DrawnQuantity,
  errors: Float64Array,
): void {
  for (let i = 0; i < errors.length; i++) alike.elements[i] += Math.abs(errors[i]);
  groups.forEach((group, at) => {
    alike.groups[at] += normOf(errors, group, rows);
  });
  projections.forEach((projection, at) => {
    alike.projections[at] += Math.abs(project(errors, projection, rows));
  });
}

/** Runs a kernel, and hands out each quantity's errors. */
function runErrors(
  { problem, gradientInputs, quantities }: DrawRequest,
  arithmetic: RecurrentArithmetic,
  rounding: RecurrentRounding,
  receive: (at: number, errors: Float64Array) => void,
) {
  const options = gradientInputs === undefined ? {} : { gradientInputs };
  const results = runRecurrence(problem, arithmetic, rounding, options);
  const all: Partial<Record<RecurrentQuantityName, Float64Array>> = {};
  quantities.forEach(({ rows, exact }, at) => {
    const values = results[rows.name];
    if (values === undefined) return;
    const errors = Float64Array.from(byHead(values, rows));
    for (let i = 0; i < errors.length; i++) errors[i] -= exact[i];
    all[rows.name] = errors;
    receive(at, errors);
  });
  return all;
}

/**
 * Runs a kernel of an arithmetic `count` times with drawn roundings, and once for each kind of values that may err alike, and gathers what its
 * errors are. Memory is one run's results and sums.
 */
export function drawErrors(
  request: DrawRequest,
  arithmetic: RecurrentArithmetic,
  count: number,
): Draws {
  const { quantities, combinations, seed } = request;
  const byDraw = (list: readonly unknown[]) => list.map(() => new Float64Array(count));
  const outputs = Object.fromEntries(quantities.map(({ rows, format }) => [rows.name, format]));
  const drawn = quantities.map(({ exact, groups, projections }): DrawnErrors => ({
    squares: new Float64Array(exact.length),
    energies: byDraw(groups),
    projections: byDraw(projections),
    alike: {
      elements: new Float64Array(exact.length),
      groups: new Float64Array(groups.length),
      projections: new Float64Array(projections.length),
    },
  }));
  const combined = byDraw(combinations);
  for (let draw = 0; draw < count; draw++) {
    const rounding = drawnRounding(arithmetic, outputs, seed + draw + 1);
    const errors = runErrors(request, arithmetic, rounding, (at, of) => {
      addDraw(drawn[at], quantities[at], of, { draw, count });
    });
    combinations.forEach((combination, at) => {
      combined[at][draw] = combine(combination, errors);
    });
  }
  const alike = new Float64Array(combinations.length);
  for (const name of alikeValuesOf(request.problem, arithmetic)) {
    const errors = runErrors(request, arithmetic, alikeRounding(arithmetic, name), (at, of) => {
      addAlike(drawn[at], quantities[at], of);
    });
    combinations.forEach((combination, at) => {
      alike[at] += Math.abs(combine(combination, errors));
    });
  }
  return { count, quantities: drawn, combinations: combined, alike };
}
