import { normalisationError, normFloor, normSlack } from './key-vector.js';

/**
 * The radius of a state, column by column, in the Euclidean norm. docs/theory/recurrent-oracle.md proves it; the names of its
 * symbols are in the comments.
 */

const u = 2 ** -53;

/** A loss by underflow, of all products of one step. */
export const tiny = 2 ** -1000;

/** What every new radius is raised by: roundings of the radius itself, and products of two errors. */
export const slack = 1 + 2 ** -40;

/** The radius and the size of the columns of one state. */
export interface ColumnErrors {
  /** ρ: ‖S_c − Ŝ_c‖ ≤ ρ_c. */
  readonly radius: Float64Array;
  /** N: ‖Ŝ_c‖ ≤ N_c. */
  readonly norm: Float64Array;
}

/** The errors of columns of zeros. */
export function zeroErrors(valueDim: number): ColumnErrors {
  return { radius: new Float64Array(valueDim), norm: new Float64Array(valueDim) };
}

/** γ(count): what `count` roundings do to a product at most, relative to it. */
export function gamma(count: number): number {
  return (count * u) / (1 - count * u);
}

/** The errors of the vectors and sums of a problem. */
export interface Roundings {
  /** η: the relative error of the elements of q and k. */
  readonly vector: number;
  /** η + γ(m): the relative error of a dot product with them. */
  readonly dot: number;
}

/** The roundings of a problem whose sums have `count` roundings. */
export function roundingsOfProblem(count: number, isNormalised: boolean): Roundings {
  const vector = isNormalised ? normalisationError : 0;
  return { vector, dot: vector + gamma(count) };
}

/** ‖D‖ at most, and what decayed rows err by. */
export interface DecayBounds {
  readonly largest: number;
  readonly error: number;
}

/** Bounds of one token that are alike for all columns. */
export interface TokenBounds {
  readonly decay: DecayBounds;
  readonly keyNorm: number;
  /** β; null for an additive write. */
  readonly strength: number | null;
  /** What β errs by, relative to itself. */
  readonly strengthError: number;
  /** What the value of an additive write errs by, relative to itself. */
  readonly valueError: number;
}

/** ‖I − β k kᵀ‖ at most, 1 for an additive write. */
export function spreadOf(strength: number | null, keyNorm: number): number {
  if (strength === null) return 1;
  const product = Math.abs(strength) * keyNorm * keyNorm;
  return strength < 0 ? 1 + product : Math.max(1, product - 1);
}

/** ρ_p, the radius of a column after the decay; 0 where everything is forgotten, also an infinite radius. */
export function decayedRadius(
  radius: number,
  norm: number,
  { largest, error }: DecayBounds,
): number {
  if (largest === 0) return 0;
  return largest * radius + (error > 0 ? error * norm + tiny : 0);
}

/**
 * Moves radius and norm past one token.
 * @param written w, as computed
 * @param squares Σ S² of the new state by column, as computed
 */
export function advanceErrors(
  { radius, norm }: ColumnErrors,
  token: TokenBounds,
  roundings: Roundings,
  written: Float64Array,
  squares: Float64Array,
): void {
  const { decay, keyNorm, strength, strengthError, valueError } = token;
  // The largest β that is possible has the largest spread.
  const largest = strength === null ? null : strength * (1 + strengthError);
  const spread = spreadOf(largest, keyNorm);
  const forgets = decay.largest === 0;
  for (let c = 0; c < radius.length; c++) {
    const before = forgets ? 0 : norm[c];
    const decayed = decayedRadius(radius[c], norm[c], decay);
    norm[c] = Math.sqrt(squares[c]) * normSlack + normFloor;
    if (strength === 0) {
      radius[c] = decayed * slack;
      continue;
    }
    const w = Math.abs(written[c]);
    const ofRead = roundings.dot * keyNorm * decay.largest * before + tiny;
    const ofWritten =
      strength === null
        ? valueError * w + (valueError > 0 ? tiny : 0)
        : Math.abs(strength) * (1 + strengthError) * ofRead + (strengthError + 2 * u) * w + tiny;
    const local = keyNorm * (ofWritten + (roundings.vector + u) * w) + u * norm[c] + tiny;
    radius[c] = (spread * decayed + local) * slack;
  }
}

/** The factors of an output scale · qᵀS, by size. */
export interface OutputFactors {
  /** |scale|. */
  readonly scale: number;
  readonly queryNorm: number;
}

/** The radius of an output, as computed, in a column of the state. */
export function outputRadius(
  { radius, norm }: ColumnErrors,
  column: number,
  { scale, queryNorm }: OutputFactors,
  roundings: Roundings,
  output: number,
): number {
  const ofRead = queryNorm * (radius[column] + roundings.dot * norm[column]) + tiny;
  return (scale * ofRead + u * Math.abs(output) + tiny) * slack;
}
