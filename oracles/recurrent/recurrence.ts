import { decodeTensor } from '../../src/formats/index.js';
import type { RecurrentProblem, RecurrentShape, Tensor } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { decayReader } from './decays.js';
import { normFloor, normSlack, readKeyVector, type KeyVector } from './key-vector.js';
import {
  advanceErrors,
  outputRadius,
  roundingsOfProblem,
  type ColumnErrors,
  type TokenBounds,
} from './radius.js';
import { advanceState, readState, roundingsOf, rowsAtATime } from './state-loops.js';

/** The state of one sequence and value head, and its errors. */
export interface State {
  /** [key dimension, padded with zeros, value dimension]. */
  readonly elements: Float64Array;
  readonly errors: ColumnErrors;
}

/** Receives the output of a token, by value dimension: values, radii and magnitudes, good until the next token. */
export type OutputReceiver = (
  token: number,
  values: Float64Array,
  radius: Float64Array,
  magnitude: Float64Array,
) => void;

/** Runs sequences of a problem, one value head at a time; what it returns is good until the next run. */
export type SequenceRunner = (sequence: number, head: number, receive: OutputReceiver) => State;

function checkFinite(values: Float64Array, name: string): void {
  if (!values.every(Number.isFinite))
    throw new RequestError(`an element of ${name} is not finite; give finite numbers`);
}

/** Rows that a decay of 0 forgets: also where they overflowed. */
function forgetRows(state: Float64Array, decay: Float64Array, dim: number): void {
  for (let i = decay.indexOf(0); i >= 0; i = decay.indexOf(0, i + 1))
    state.fill(0, i * dim, (i + 1) * dim);
}

/** Puts a state of the tensor, or zeros, into `state`. */
function beginState(state: State, initial: Tensor | undefined, at: number, keyDim: number): void {
  const { elements, errors } = state;
  const { radius, norm } = errors;
  elements.fill(0);
  radius.fill(0);
  norm.fill(0);
  if (initial === undefined) return;
  const dim = norm.length;
  const size = keyDim * dim;
  decodeTensor(initial, at * size, (at + 1) * size, elements);
  checkFinite(elements, 'initial_state');
  for (let c = 0; c < dim; c++) {
    let squares = 0;
    for (let i = c; i < size; i += dim) squares += elements[i] * elements[i];
    norm[c] = Math.sqrt(squares) * normSlack + normFloor;
  }
}

/** Writes the output of a token from what its query reads: values, radii, and |scale| ‖q‖ ‖S_c‖. */
function finishOutput(
  read: Float64Array,
  errors: ColumnErrors,
  { scale, queryNorm }: { readonly scale: number; readonly queryNorm: number },
  roundings: ReturnType<typeof roundingsOfProblem>,
  { values, radius, magnitude }: Readonly<Record<'values' | 'radius' | 'magnitude', Float64Array>>,
): void {
  const factors = { scale: Math.abs(scale), queryNorm };
  for (let c = 0; c < read.length; c++) {
    values[c] = scale * read[c];
    const bound = outputRadius(errors, c, factors, roundings, values[c]);
    radius[c] = bound < Infinity ? bound : Infinity;
    magnitude[c] = factors.scale * queryNorm * errors.norm[c];
  }
}

/**
 * A runner of the problem's sequences, token by token in fp64 with running radii (docs/theory/recurrent-oracle.md). It
 * keeps one state and some vectors. Its runs throw a RequestError for inputs that are not finite, gates of −∞ apart.
 */
export function sequenceRunner(problem: RecurrentProblem, shape: RecurrentShape): SequenceRunner {
  const { q, k, v, beta, initialState, normalisation } = problem;
  const { keyHeads, valueHeads, keyDim, valueDim, sequences } = shape;
  const scale = problem.scale ?? 1 / Math.sqrt(keyDim);
  const paddedDim = Math.ceil(keyDim / rowsAtATime) * rowsAtATime;
  const vector = (): KeyVector => ({ elements: new Float64Array(paddedDim), norm: 0 });
  const column = () => new Float64Array(valueDim);
  const [query, key] = [vector(), vector()];
  const [value, written, read, squares] = [column(), column(), column(), column()];
  const output = { values: column(), radius: column(), magnitude: column() };
  const state: State = {
    elements: new Float64Array(paddedDim * valueDim),
    errors: { radius: column(), norm: column() },
  };
  const strengthOf = new Float64Array(1);
  const decayOf = decayReader(problem, shape, paddedDim);
  const roundings = roundingsOfProblem(roundingsOf(paddedDim), normalisation !== undefined);
  const epsilon = normalisation?.epsilon;

  function advance(token: number, head: number): void {
    const keyHead = Math.floor(head / (valueHeads / keyHeads));
    const at = token * valueHeads + head;
    readKeyVector(q, token * keyHeads + keyHead, epsilon, query);
    readKeyVector(k, token * keyHeads + keyHead, epsilon, key);
    decodeTensor(v, at * valueDim, (at + 1) * valueDim, value);
    checkFinite(value, 'v');
    const decay = decayOf(token, head);
    forgetRows(state.elements, decay.factors, valueDim);
    const factors = { decay: decay.factors, key: key.elements, query: query.elements };
    let strength: number | null = null;
    if (beta) {
      [strength] = decodeTensor(beta, at, at + 1, strengthOf);
      checkFinite(strengthOf, 'beta');
      readState(state.elements, decay.factors, key.elements, read);
      for (let c = 0; c < valueDim; c++)
        written[c] = strength === 0 ? 0 : strength * (value[c] - read[c]);
    } else written.set(value);
    advanceState(state.elements, { ...factors, written }, read, squares);
    const bounds: TokenBounds = { decay, keyNorm: key.norm, strength };
    advanceErrors(state.errors, bounds, roundings, written, squares);
    finishOutput(read, state.errors, { scale, queryNorm: query.norm }, roundings, output);
  }

  return (sequence, head, receive) => {
    beginState(state, initialState, sequence * valueHeads + head, keyDim);
    const { first, end } = sequences[sequence];
    for (let token = first; token < end; token++) {
      advance(token, head);
      receive(token, output.values, output.radius, output.magnitude);
    }
    return state;
  };
}
