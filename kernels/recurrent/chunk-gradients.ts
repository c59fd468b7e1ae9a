import type { RecurrentShape } from '../../src/problem/index.js';
import type { ChunkParts, ChunkPlace } from './chunk-parts.js';
import { gradientRows, type GradientRows } from './gradient-rows.js';

/** The gradients of a chunk of n tokens; matrices as in {@link ChunkParts}. */
export interface ChunkGradients {
  /** dO. */
  readonly outputs: Float64Array;
  /** dS of the state behind the chunk as an operand. */
  readonly stateOperand: Float64Array;
  /** dN and dU, dW. */
  readonly writes: Float64Array;
  readonly keyFactor: Float64Array;
  /** dP and dA, decayed by head, and dT. */
  readonly intra: Float64Array;
  readonly triangle: Float64Array;
  readonly inverse: Float64Array;
  /** d(β k E), d(β v). */
  readonly keyOperand: Float64Array;
  readonly valueOperand: Float64Array;
  /** dK of keys as they are written, without A; and as delta writes read at them. */
  readonly written: Float64Array;
  readonly read: Float64Array;
  /** Σ_j dA_sj E_{s←j} k_j of row s, and Σ_s dA_sj β_s E_{s←j} k_s of row j. */
  readonly triangleRows: Float64Array;
  readonly triangleColumns: Float64Array;
  /** dβ's share by way of A. */
  readonly strengthOfTriangle: Float64Array;
  /** The gradients of the sums G of the chunk's gates, as many a row as there are gates, and what flows in from behind the chunk. */
  readonly gateSums: Float64Array;
  readonly gateCarry: Float64Array;
  readonly scratch: Float64Array;
  /** What is handed on. */
  readonly rows: GradientRows;
}

/** Changes the gradients of a chunk before dK's and dβ's parts are added and gates' gradients summed up. */
export type GradientChange = (
  gradients: ChunkGradients,
  parts: ChunkParts,
  place: ChunkPlace,
) => void;

/** Gradients of chunks of up to `chunk` tokens. */
export function chunkGradients(
  chunk: number,
  shape: Pick<RecurrentShape, 'keyDim' | 'valueDim'>,
  gateCount: number,
): ChunkGradients {
  const { keyDim, valueDim } = shape;
  const ofKeys = () => new Float64Array(chunk * keyDim);
  const ofValues = () => new Float64Array(chunk * valueDim);
  const square = () => new Float64Array(chunk * chunk);
  return {
    outputs: ofValues(),
    stateOperand: new Float64Array(keyDim * valueDim),
    writes: ofValues(),
    keyFactor: ofKeys(),
    intra: square(),
    triangle: square(),
    inverse: square(),
    keyOperand: ofKeys(),
    valueOperand: ofValues(),
    written: ofKeys(),
    read: ofKeys(),
    triangleRows: ofKeys(),
    triangleColumns: ofKeys(),
    scratch: ofKeys(),
    strengthOfTriangle: new Float64Array(chunk),
    gateSums: new Float64Array(chunk * gateCount),
    gateCarry: new Float64Array(gateCount),
    rows: gradientRows(chunk, shape, gateCount),
  };
}
