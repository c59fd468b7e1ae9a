/**
 * One query with the keys that count for it, every number finite: what the slower levels of the
 * oracle work on. `keys` and `values` hold a whole head; `visible` selects from them.
 */
export interface Row {
  /** [qkDim] */
  readonly query: Float64Array;
  /** [seqlen_k × qkDim] */
  readonly keys: Float64Array;
  /** Upper bounds on the Euclidean norms of the query and of every key, [seqlen_k]. */
  readonly queryNorm: number;
  readonly keyNorms: Float64Array;
  /** [seqlen_k × vDim] */
  readonly values: Float64Array;
  readonly qkDim: number;
  readonly vDim: number;
  /** Indices of the keys that take part; never empty. */
  readonly visible: Int32Array;
  /** Per visible key 0, or ±1 where the raw score is ±∞ and the softcap makes it ±cap. */
  readonly infinite: Int8Array;
}

/** What turns a raw score into an exponent: the problem's scale and softcap. */
export interface ScoreLaw {
  readonly scale: number;
  readonly softcap: number | null;
}

/** The oracle's answer for one row, each value with a proven radius. */
export interface RowResult {
  /** [vDim] */
  readonly out: Float64Array;
  readonly outRadius: Float64Array;
  /** Σ p|v| / Σ p per column. */
  readonly magnitude: Float64Array;
  /** Natural log of Σ exp(score). */
  readonly lse: number;
  readonly lseRadius: number;
  /** The largest score, in natural-log units, to about fp64 accuracy. */
  readonly maximum: number;
}
