import type { GradientSums } from './sums.js';

/** The row of a head's key in dK and dV: −1 for one that is not wanted. */
type KeyPlaces = (key: number) => number;

/** Derivatives by scores, of a tile of rows and keys: dS, before a softcap's slope. */
export interface DerivativeTile {
  readonly firstKey: number;
  /** [64 × 64] each: dS and P·(|dP| + Σ P|dP|). */
  readonly derivatives: Float64Array;
  readonly scales: Float64Array;
  /** [64 × 64]: P, 0 for unseen keys. */
  readonly weights: Float64Array;
}

/** Targets of the second pass; null for those not wanted. */
export interface TileTargets {
  /** dQ of one head. */
  readonly dq: GradientSums | null;
  /** dK and dV of a head of K and V, both or none. */
  readonly keys: { readonly dk: GradientSums; readonly dv: GradientSums } | null;
  readonly placeOf: KeyPlaces;
  readonly visit: ((tile: DerivativeTile) => void) | null;
}
