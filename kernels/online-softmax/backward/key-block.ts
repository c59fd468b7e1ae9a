import type { KeyRange } from '../../../src/problem/index.js';

/** The sizes of operands. */
export interface BackwardDimensions {
  readonly qkDim: number;
  readonly vDim: number;
}

/** A block of queries, as one block of keys meets it. */
export interface QueryBlock {
  /** Number of the block's queries that exist. */
  readonly rows: number;
  /** Bit patterns, [rows × qkDim] and [rows × vDim]. */
  readonly queries: Uint16Array;
  readonly dout: Uint16Array;
  /** [rows], fp32: LSE·log2 e, and D. */
  readonly logSumExp2: Float32Array;
  readonly productSums: Float32Array;
  /** The ranges of the block's keys that each of the rows sees, counted within the block. */
  readonly visible: readonly (readonly KeyRange[])[];
}

/** A block of keys on its way through blocks of queries; `begin`, `queries` for each, `finish`. */
export interface KeyBlockWork {
  /** Begins with the existing keys, [keys × qkDim], and their values, [keys × vDim], as bit patterns. */
  readonly begin: (keys: Uint16Array, values: Uint16Array) => void;
  /**
   * Adds a block of queries to dK and dV, and returns its tile of dQ, [rows × qkDim] fp32, which the next call may overwrite.
   *
   * @param continues whether the chain of the tile continues that of the last call, for the same queries
   */
  readonly queries: (block: QueryBlock, continues?: boolean) => Float32Array;
  /** dK and dV of the existing keys in fp32, neither scaled nor rounded. */
  readonly finish: () => { readonly dk: Float32Array; readonly dv: Float32Array };
}
