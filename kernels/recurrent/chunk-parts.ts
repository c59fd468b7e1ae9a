import type { RecurrentShape } from '../../src/problem/index.js';
import { chunkDecays, type ChunkDecays } from './decays.js';
import type { TokenInputs } from './inputs.js';

/**
 * What is made of a chunk of n tokens; a matrix is row-major from its first element on, and has a row for each token unless said.
 * Where decays are by head, products are decayed; where they are by key dimension, their operands are.
 */
export interface ChunkParts {
  readonly decays: ChunkDecays;
  /** The state before the chunk as an operand, [key dimension, value dimension]. */
  readonly stateOperand: Float64Array;
  /** A, P, T of [n, n]. */
  readonly triangle: Float64Array;
  readonly intra: Float64Array;
  readonly inverse: Float64Array;
  /** β k E, β v, W, U. */
  readonly keyOperand: Float64Array;
  readonly valueOperand: Float64Array;
  readonly keyFactor: Float64Array;
  readonly valueFactor: Float64Array;
  /** N before and after it is rounded. */
  readonly exactWrites: Float64Array;
  readonly writes: Float64Array;
  /** What the end of the chunk adds the product of to the state: keys, and N; one of them is decayed to the end. */
  readonly endKeys: Float64Array;
  readonly endWrites: Float64Array;
  /** Queries, decayed from the start where decays are by key dimension. */
  readonly startQueries: Float64Array;
  /** Keys, or what else is decayed row by row. */
  readonly decayed: Float64Array;
  /** Its output. */
  readonly out: Float64Array;
}

/** Where a chunk lies. */
export interface ChunkPlace {
  readonly inputs: TokenInputs;
  readonly sequence: number;
  /** Of its sequence, from 0, and how many the sequence has. */
  readonly chunk: number;
  readonly chunks: number;
}

/**
 * When a chunk can be changed. Forward: its decays and the state as an operand are there; A and P are; T is; N is; the new state is.
 */
export type ChunkStage = 'start' | 'products' | 'inverse' | 'writes' | 'end';

/** Changes a chunk at a stage; `state` is the state itself. */
export type ChunkChange = (
  stage: ChunkStage,
  parts: ChunkParts,
  place: ChunkPlace,
  state: Float64Array,
) => void;

/** Parts of chunks of up to `chunk` tokens. */
export function chunkParts(
  chunk: number,
  { keyDim, valueDim }: Pick<RecurrentShape, 'keyDim' | 'valueDim'>,
  gateCount: number,
): ChunkParts {
  const ofKeys = () => new Float64Array(chunk * keyDim);
  const ofValues = () => new Float64Array(chunk * valueDim);
  const square = () => new Float64Array(chunk * chunk);
  return {
    decays: chunkDecays(chunk, gateCount),
    stateOperand: new Float64Array(keyDim * valueDim),
    triangle: square(),
    intra: square(),
    inverse: square(),
    keyOperand: ofKeys(),
    valueOperand: ofValues(),
    keyFactor: ofKeys(),
    valueFactor: ofValues(),
    exactWrites: ofValues(),
    writes: ofValues(),
    endKeys: ofKeys(),
    endWrites: ofValues(),
    startQueries: ofKeys(),
    decayed: ofKeys(),
    out: ofValues(),
  };
}
