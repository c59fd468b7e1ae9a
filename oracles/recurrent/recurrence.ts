import {
  recurrentScale,
  type RecurrentProblem,
  type RecurrentShape,
} from '../../src/problem/index.js';
import { advanceErrors, outputRadius, roundingsOfProblem, type Roundings } from './radius.js';
import { advanceState, readState, roundingsOf } from './state-loops.js';
import { beginState, forgetRows, paddedKeyDim, zeroState, type State } from './state.js';
import { tokenReader, type TokenOperands } from './token-operands.js';

/** Receives the output of a token, by value dimension: values, radii and magnitudes, good until the next token. */
export type OutputReceiver = (
  token: number,
  values: Float64Array,
  radius: Float64Array,
  magnitude: Float64Array,
) => void;

/** Runs sequences of a problem, one value head at a time; what it returns is good until the next run. */
export type SequenceRunner = (sequence: number, head: number, receive: OutputReceiver) => State;

/** A state on its way through the tokens of a sequence. */
export interface StateWalk {
  readonly state: State;
  readonly roundings: Roundings;
  /** What the last token's query reads, before the scale, by value dimension. */
  readonly read: Float64Array;
  /** z = v − Sᵀk: what the decayed state lacked of the last token's value, for a delta write. */
  readonly missing: Float64Array;
  /** Goes to the beginning of a sequence. */
  readonly begin: (sequence: number, head: number) => void;
  readonly advance: (token: TokenOperands) => void;
}

/** A walk through the problem's sequences in fp64 with running radii (docs/theory/recurrent-oracle.md). */
export function stateWalk(problem: RecurrentProblem, shape: RecurrentShape): StateWalk {
  const { initialState, normalisation } = problem;
  const { valueHeads, keyDim, valueDim } = shape;
  const column = () => new Float64Array(valueDim);
  const [missing, written, read, squares] = [column(), column(), column(), column()];
  const state = zeroState(shape);
  const roundings = roundingsOfProblem(
    roundingsOf(paddedKeyDim(shape)),
    normalisation !== undefined,
  );
  const begin = (sequence: number, head: number) => {
    beginState(state, initialState, sequence * valueHeads + head, keyDim, 'initial_state');
  };
  const advance = (token: TokenOperands) => {
    const { query, key, value, decay, strength } = token;
    forgetRows(state.elements, decay.factors);
    if (strength === null) written.set(value);
    else {
      readState(state.elements, decay.factors, key.elements, read);
      for (let c = 0; c < valueDim; c++) {
        missing[c] = value[c] - read[c];
        written[c] = strength === 0 ? 0 : strength * missing[c];
      }
    }
    const factors = { decay: decay.factors, key: key.elements, query: query.elements };
    advanceState(state.elements, { ...factors, written }, read, squares);
    advanceErrors(state.errors, { ...token, keyNorm: key.norm }, roundings, written, squares);
  };
  return { state, roundings, read, missing, begin, advance };
}

/** Writes the output of a token from what its query reads: values, radii, and |scale| ‖q‖ ‖S_c‖. */
function finishOutput(
  { read, state, roundings }: StateWalk,
  { scale, queryNorm }: { readonly scale: number; readonly queryNorm: number },
  { values, radius, magnitude }: Readonly<Record<'values' | 'radius' | 'magnitude', Float64Array>>,
): void {
  const { errors } = state;
  const factors = { scale: Math.abs(scale), queryNorm };
  for (let c = 0; c < read.length; c++) {
    values[c] = scale * read[c];
    const bound = outputRadius(errors, c, factors, roundings, values[c]);
    radius[c] = bound < Infinity ? bound : Infinity;
    magnitude[c] = factors.scale * queryNorm * errors.norm[c];
  }
}

/**
 * A runner of the problem's sequences, token by token. It keeps one state and some vectors. Its runs throw a RequestError for inputs
 * that are not finite, gates of −∞ apart.
 */
export function sequenceRunner(problem: RecurrentProblem, shape: RecurrentShape): SequenceRunner {
  const scale = recurrentScale(problem);
  const column = () => new Float64Array(shape.valueDim);
  const output = { values: column(), radius: column(), magnitude: column() };
  const readToken = tokenReader(problem, shape, paddedKeyDim(shape));
  const walk = stateWalk(problem, shape);
  return (sequence, head, receive) => {
    walk.begin(sequence, head);
    const { first, end } = shape.sequences[sequence];
    for (let token = first; token < end; token++) {
      const operands = readToken(token, head);
      walk.advance(operands);
      finishOutput(walk, { scale, queryNorm: operands.query.norm }, output);
      receive(token, output.values, output.radius, output.magnitude);
    }
    return walk.state;
  };
}
