/** Numbers of a row, one for each key. */
export interface Coefficients {
  /** Rounded to fp64. */
  readonly values: Float64Array;
  /** The largest error of each before that rounding. */
  readonly radius: Float64Array;
}

/** P and its derivatives of one row, solved with more precision than fp64, with the parts of a sink's gradient. */
export interface SolvedRow {
  /** Per visible key: P after dropout, dT, and dS, which is dT before a softcap's slope. */
  readonly weights: Coefficients;
  readonly derivatives: Coefficients;
  readonly scoreDerivatives: Coefficients;
  /** P·(|dP| + Σ P|dP|), the scale of dS's errors, and times the slope: about fp64 accuracy. */
  readonly scales: Float64Array;
  readonly cappedScales: Float64Array;
  /** D = Σ P dP with its radius, and Σ P|dP|. */
  readonly mean: number;
  readonly meanRadius: number;
  readonly meanSize: number;
  /** The sink's share of the row sum, relative error below 2^-50; 0 without a sink. */
  readonly sinkShare: number;
}
