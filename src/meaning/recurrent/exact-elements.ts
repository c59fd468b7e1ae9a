import { multiplyDoubleDouble, type DoubleDouble } from '../../arith/index.js';
import { distanceOf, type RowPlace } from '../contracts/index.js';
import type { RecurrentProblem, RecurrentShape } from '../../problem/index.js';
import type { RecurrentConstants } from './constants.js';
import { runColumns, type ColumnsPlace } from './exact-columns.js';

/** A result of a recurrence that is compared. */
export type RecurrentOutput = 'out' | 'final_state';

/**
 * What an element of a result would be without any rounding; null for one that has no meaning.
 * @param place a token of a batch entry for `out`, a key dimension of a sequence for `final_state`
 */
export type RecurrentRealOf = (
  output: RecurrentOutput,
  place: RowPlace,
  column: number,
) => DoubleDouble | null;

/** No distance is relative to less: the low words of smaller values underflow. */
const leastYardstick = 2 ** -850;

/** An exact element, without the scale, and what its errors are relative to. */
export interface ExactElement {
  readonly output: RecurrentOutput;
  readonly place: RowPlace;
  readonly column: number;
  readonly exact: DoubleDouble;
  readonly size: number;
}

/** The elements of columns by some constants. */
export function elementsOf(
  problem: RecurrentProblem,
  shape: RecurrentShape,
  at: ColumnsPlace,
  constants: RecurrentConstants,
  outputs: readonly RecurrentOutput[],
): readonly ExactElement[] {
  const { sequence, head, columns } = at;
  const elements: ExactElement[] = [];
  const states = runColumns(problem, shape, at, constants, (token, i, exact, size) => {
    if (!outputs.includes('out')) return;
    const place = { batch: Math.floor(token / shape.tokens), head, row: token % shape.tokens };
    elements.push({ output: 'out', place, column: columns[i], exact, size });
  });
  if (!outputs.includes('final_state')) return elements;
  states.forEach((state, i) =>
    state.elements.forEach((exact, row) => {
      const place = { batch: sequence, head, row };
      const { size } = state;
      elements.push({ output: 'final_state', place, column: columns[i], exact, size });
    }),
  );
  return elements;
}

/** How far a real value is from an element; `out` times a scale. */
export function distanceFrom(
  { output, exact, size }: ExactElement,
  real: DoubleDouble,
  scale: DoubleDouble,
): number {
  if (output === 'final_state') return distanceOf(real, exact, Math.max(leastYardstick, size));
  const yardstick = Math.max(leastYardstick, Math.abs(scale.high) * size);
  return distanceOf(real, multiplyDoubleDouble(exact, scale), yardstick);
}
