import type { InputPatterns } from './formats.js';
import type { TileWork } from './query-tiles.js';

/**
 * What a tile of queries has done. Rescales are counted after the first block in which the tile sees a
 * key: before, there is nothing to rescale.
 */
export interface ForwardCounters {
  /** Rows whose sums were rescaled, over all blocks. */
  readonly rowRescales: number;
  /** Rows whose rescale the threshold skipped although their maximum had grown. */
  readonly rowRescalesSkipped: number;
  /** Warps (32 rows) whose output was multiplied, and those whose multiplication was skipped. */
  readonly warpRescales: number;
  readonly warpRescalesSkipped: number;
  /** Elements of P computed by the polynomial and by the hardware unit, masked ones included. */
  readonly polynomialLanes: number;
  readonly hardwareLanes: number;
  /** Instructions' worth of matrix products: 128 × 128 × 16 each. */
  readonly mmas: number;
}

/** Head dimensions of a tile. */
export interface TileDimensions {
  readonly qkDim: number;
  readonly vDim: number;
}

/** The results of a tile of queries. */
export interface ForwardTileResult {
  /** [rows × vDim] bit patterns in the output's format. */
  readonly out: Uint16Array;
  /** [rows], natural logarithm. */
  readonly lse: Float32Array;
  /** [rows]: how often each row's sums were rescaled. */
  readonly rescales: Int32Array;
  readonly counters: ForwardCounters;
}

/** The results of a tile of queries over a part of their keys. */
export interface PartialTileResult extends Omit<ForwardTileResult, 'out'> {
  /** [rows × vDim] normalised, not rounded to the output's format. */
  readonly out: Float32Array;
}

/** The forward's work on tiles. */
export interface ForwardTile extends TileWork<ForwardTileResult, InputPatterns> {
  /** In place of `finish`, for a split. */
  readonly finishPartial: () => PartialTileResult;
}

const mmaRows = 128;

/** Matrix products of 128 rows, 128 columns and `sumLength` terms that a block takes. */
export function blockMmas(qkDim: number, keys: number, vDim: number, sumLength: number): number {
  const scores = (qkDim / sumLength) * Math.ceil(keys / mmaRows);
  const outputs = (keys / sumLength) * Math.ceil(vDim / mmaRows);
  return scores + outputs;
}
