import { decodeTensor } from '../../src/formats/index.js';
import type { RecurrentShape, Tensor } from '../../src/problem/index.js';
import { normFloor, normSlack } from './key-vector.js';
import { zeroErrors, type ColumnErrors } from './radius.js';
import { rowsAtATime } from './state-loops.js';
import { checkFinite } from './token-operands.js';

/** The state of one sequence and value head, or its gradient, and its errors. */
export interface State {
  /** [key dimension, padded with zeros, value dimension]. */
  readonly elements: Float64Array;
  readonly errors: ColumnErrors;
}

/** The key dimension as the loops over states need it: a multiple of the rows that they take at a time. */
export function paddedKeyDim({ keyDim }: RecurrentShape): number {
  return Math.ceil(keyDim / rowsAtATime) * rowsAtATime;
}

/** A state of zeros. */
export function zeroState(shape: RecurrentShape): State {
  const { valueDim } = shape;
  return {
    elements: new Float64Array(paddedKeyDim(shape) * valueDim),
    errors: zeroErrors(valueDim),
  };
}

/** Makes errors what others are. */
export function copyErrors(to: ColumnErrors, from: ColumnErrors): void {
  to.radius.set(from.radius);
  to.norm.set(from.norm);
}

/** Makes a state what another is. */
export function copyState(to: State, from: State): void {
  to.elements.set(from.elements);
  copyErrors(to.errors, from.errors);
}

/** Puts the state number `at` of a tensor, or zeros, into `state`. @throws RequestError for elements that are not finite */
export function beginState(
  state: State,
  tensor: Tensor | undefined,
  at: number,
  keyDim: number,
  name: string,
): void {
  const { elements, errors } = state;
  const { radius, norm } = errors;
  elements.fill(0);
  radius.fill(0);
  norm.fill(0);
  if (tensor === undefined) return;
  const dim = norm.length;
  const size = keyDim * dim;
  decodeTensor(tensor, at * size, (at + 1) * size, elements);
  checkFinite(elements, name);
  for (let c = 0; c < dim; c++) {
    let squares = 0;
    for (let i = c; i < size; i += dim) squares += elements[i] * elements[i];
    norm[c] = Math.sqrt(squares) * normSlack + normFloor;
  }
}

/** Sets rows that a decay of 0 forgets to 0: also where they overflowed. */
export function forgetRows(elements: Float64Array, decay: Float64Array): void {
  const dim = elements.length / decay.length;
  for (let i = decay.indexOf(0); i >= 0; i = decay.indexOf(0, i + 1))
    elements.fill(0, i * dim, (i + 1) * dim);
}
