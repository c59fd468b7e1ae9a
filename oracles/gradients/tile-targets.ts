import type { GradientSums } from './sums.js';

/** Where the keys of a head are in dK and dV: −1 for one that is not asked for. */
type KeyPlaces = (key: number) => number;

/** Derivatives by scores, of a tile of rows and keys: dS, before a softcap's slope. */
export interface DerivativeTile {
  readonly firstKey: number;
  /** [64 × 64] each: dS and P·(|dP| + Σ P|dP|). */
  readonly derivatives: Float64Array;
  readonly scales: Float64Array;
  /** [64 × 64]: P, of unseen keys 0. */
  readonly weights: Float64Array;
}

/** What the second pass adds to; null for what nobody wants. */
export interface TileTargets {
  /** Of one head. */
  readonly dq: GradientSums | null;
  /** Of a head of K and V, both or none. */
  readonly keys: { readonly dk: GradientSums; readonly dv: GradientSums } | null;
  readonly placeOf: KeyPlaces;
  readonly visit: ((tile: DerivativeTile) => void) | null;
}
