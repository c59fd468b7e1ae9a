import {
  addDoubleDouble,
  divideDoubleDouble,
  doubleDouble,
  multiplyDoubleDouble,
  squareRootDoubleDouble,
  subtractDoubleDouble,
  type DoubleDouble,
} from '../../arith/index.js';
import { decodeTensor } from '../../formats/index.js';
import {
  recurrentFamilies,
  type RecurrentLaw,
  type RecurrentProblem,
  type RecurrentShape,
  type Tensor,
} from '../../problem/index.js';
import { power } from '../contracts/index.js';
import type { RecurrentConstants } from './constants.js';
import { madeGates, madeStrength } from './exact-gates.js';

/** Columns of the state of one sequence and value head. */
export interface ColumnsPlace {
  readonly sequence: number;
  readonly head: number;
  readonly columns: readonly number[];
}

/** One column of a state. */
export interface ExactColumn {
  /** By key dimension. */
  readonly elements: DoubleDouble[];
  /**
   * What its errors are relative to: the largest norm that it has had, multiplied since by what may grow an error: decays, and
   * ‖I − β k kᵀ‖. A term that cancels is no larger than a few times this, since β k vᵀ is what the new state has beside (I − β k kᵀ) D S.
   */
  size: number;
}

/**
 * Receives what a token's query reads of a column, Σ q s without the scale.
 * @param index of the column among those asked for
 * @param size what its errors are relative to: ‖q‖ times the column's
 */
export type ReadReceiver = (token: number, index: number, read: DoubleDouble, size: number) => void;

const zero = doubleDouble(0);

function norm(vector: readonly DoubleDouble[]): number {
  return Math.hypot(...vector.map(({ high }) => high));
}

function dotProduct(a: readonly DoubleDouble[], b: readonly DoubleDouble[]): DoubleDouble {
  return a.reduce((sum, x, i) => addDoubleDouble(sum, multiplyDoubleDouble(x, b[i])), zero);
}

/** A row of a tensor. */
function rowOf(tensor: Tensor, row: number, length: number): readonly DoubleDouble[] {
  const numbers = decodeTensor(tensor, row * length, (row + 1) * length);
  return Array.from(numbers, doubleDouble);
}

/** A query or a key, divided by √(Σx² + ε) where the problem normalises it. */
function keyVector(
  tensor: Tensor,
  row: number,
  length: number,
  { epsilon }: RecurrentConstants,
): readonly DoubleDouble[] {
  const vector = rowOf(tensor, row, length);
  if (epsilon === null) return vector;
  const root = squareRootDoubleDouble(addDoubleDouble(dotProduct(vector, vector), epsilon.value));
  return vector.map((x) => divideDoubleDouble(x, root));
}

/** What a token does to a state: decays by key dimension (one for all, where there is one), key, query, and β of a delta write. */
interface Token {
  readonly decays: readonly DoubleDouble[];
  readonly key: readonly DoubleDouble[];
  readonly query: readonly DoubleDouble[];
  readonly value: Float64Array;
  readonly strength: DoubleDouble | null;
}

function decaysOf(
  { family, g, gateInputs, gateBase }: RecurrentProblem,
  { keyDim }: RecurrentShape,
  at: number,
  head: number,
  constants: RecurrentConstants,
): readonly DoubleDouble[] {
  const { logarithm } = constants;
  const { decay }: RecurrentLaw = recurrentFamilies[family];
  if (decay === 'none') return [doubleDouble(1)];
  if (decay === 'fixed-by-head')
    return [subtractDoubleDouble(doubleDouble(1), doubleDouble(2 ** (-5 - head)))];
  const gates = gateInputs
    ? madeGates(gateInputs, at, constants)
    : rowOf(g!, at, decay === 'by-head' ? 1 : keyDim);
  const octavesOf = (gate: DoubleDouble) =>
    gateBase === 2 ? gate : multiplyDoubleDouble(gate, logarithm!.value);
  return gates.map((gate) => (gate.high === -Infinity ? zero : power(octavesOf(gate))));
}

function strengthOf(
  { beta, strengthLogits }: RecurrentProblem,
  at: number,
  constants: RecurrentConstants,
): DoubleDouble | null {
  if (strengthLogits) return madeStrength(strengthLogits, at, constants);
  return beta === undefined ? null : doubleDouble(decodeTensor(beta, at, at + 1)[0]);
}

function readToken(
  problem: RecurrentProblem,
  shape: RecurrentShape,
  token: number,
  head: number,
  constants: RecurrentConstants,
): Token {
  const { keyHeads, valueHeads, keyDim, valueDim } = shape;
  const ofKey = token * keyHeads + Math.floor((head * keyHeads) / valueHeads);
  const at = token * valueHeads + head;
  const { q, k, v } = problem;
  return {
    decays: decaysOf(problem, shape, at, head, constants),
    key: keyVector(k, ofKey, keyDim, constants),
    query: keyVector(q, ofKey, keyDim, constants),
    value: decodeTensor(v, at * valueDim, (at + 1) * valueDim),
    strength: strengthOf(problem, at, constants),
  };
}

/** The state decays, the token is written, and the query reads. */
function advance(column: ExactColumn, value: number, token: Token, norms: Norms): DoubleDouble {
  const { elements } = column;
  const { decays, key, query, strength } = token;
  elements.forEach((s, i) => {
    elements[i] = multiplyDoubleDouble(decays[decays.length === 1 ? 0 : i], s);
  });
  const kept = norms.decay * column.size;
  let [written, spread] = [doubleDouble(value), 1];
  if (strength !== null) {
    const lacking = subtractDoubleDouble(written, dotProduct(key, elements));
    written = multiplyDoubleDouble(lacking, strength);
    spread = Math.max(1, Math.abs(1 - strength.high * norms.key ** 2));
  }
  elements.forEach((s, i) => {
    elements[i] = addDoubleDouble(s, multiplyDoubleDouble(key[i], written));
  });
  column.size = Math.max(spread * kept, norm(elements));
  return dotProduct(query, elements);
}

/** Of a token: the largest decay, and ‖k‖. */
interface Norms {
  readonly decay: number;
  readonly key: number;
}

/**
 * Some columns of a state after all tokens of its sequence, by the law of `RecurrentProblem` in double-double arithmetic; columns
 * never meet. Each token adds some K · 2^-104 of `size` to the error.
 *
 * @param receive called for each token and column
 */
export function runColumns(
  problem: RecurrentProblem,
  shape: RecurrentShape,
  { sequence, head, columns }: ColumnsPlace,
  constants: RecurrentConstants,
  receive: ReadReceiver,
): readonly ExactColumn[] {
  const { keyDim, valueDim, valueHeads, sequences } = shape;
  const { initialState } = problem;
  const states = columns.map((column): ExactColumn => {
    const first = (sequence * valueHeads + head) * keyDim;
    const elements = Array.from({ length: keyDim }, (_, i) => {
      const at = (first + i) * valueDim + column;
      return initialState === undefined
        ? zero
        : doubleDouble(decodeTensor(initialState, at, at + 1)[0]);
    });
    return { elements, size: norm(elements) };
  });
  const { first, end } = sequences[sequence];
  for (let at = first; at < end; at++) {
    const token = readToken(problem, shape, at, head, constants);
    const decay = Math.max(...token.decays.map(({ high }) => high));
    const [ofKey, ofQuery] = [norm(token.key), norm(token.query)];
    states.forEach((state, i) => {
      const value = token.value[columns[i]];
      const read = advance(state, value, token, { decay, key: ofKey });
      receive(at, i, read, ofQuery * state.size);
    });
  }
  return states;
}
