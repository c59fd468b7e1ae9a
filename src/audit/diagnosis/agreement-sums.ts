import type { SampleRow } from './hypothesis.js';
import type { RowPrediction } from './prediction.js';

/** The regression of the error on the predicted error: how much of it is the predicted one. */
export interface Slope {
  readonly value: number;
  readonly standardError: number;
  /** Σ of the predicted squares in units of the rounding's variance. */
  readonly energy: number;
  /** Mean over the rows of the squared distance of their slopes from it, in units of the rounding's variance. */
  readonly dispersion: number;
  /** The most by which it may be off where all weights round alike: P's largest relative rounding error, as a slope. */
  readonly alike: number;
}

/** Agreement of a hypothesis with the LSE, over the damaged rows that have one to compare. */
export interface LseAgreement {
  readonly rows: number;
  /** Rows whose LSE a kernel with this fault, and one without, may give. */
  readonly fitting: number;
  readonly fittingCorrect: number;
  /** Means of ((LSE − predicted) / its rounding)², capped. */
  readonly misfit: number;
  /** Root mean squares of the distance from the predicted LSE, and from the correct one. */
  readonly error: number;
  readonly correctError: number;
}

/** A row's largest share in the mean misfit of the LSE. */
const lseCap = 400;

/** |a − b|; 0 for equal infinities, and 1 where it is not finite. */
function lseDistance(a: number, b: number): number {
  if (a === b) return 0;
  const distance = Math.abs(a - b);
  return distance < 1 ? distance : 1;
}

/** Whether a kernel that should give `predicted` may give the row's LSE. */
export function lseFits({ observedLse, bound, elsewhere }: SampleRow, predicted: number): boolean {
  if (observedLse === null || Number.isNaN(predicted) || observedLse === predicted) return true;
  const allowed = bound.keys === 0 ? elsewhere.lse : bound.lse;
  return Math.abs(observedLse - predicted) <= allowed + 2 ** -22 * Math.abs(predicted);
}

/** Sums over rows that the slope of the error on the predicted error is made of. */
export class SlopeSums {
  readonly #cross: number[] = [];
  readonly #squares: number[] = [];
  #alike = 0;

  add(
    { observed, correct, bound }: SampleRow,
    { out, noise }: RowPrediction,
    sound: Float64Array,
  ): void {
    let cross = 0;
    let squares = 0;
    let own = 0;
    for (let c = 0; c < out.length; c++) {
      const d = out[c] - sound[c];
      own += d * sound[c];
      cross += d * (observed[c] - sound[c]);
      squares += d * d;
    }
    const variance = Math.max(noise, correct.noise) / out.length;
    if (!(squares > 0) || !Number.isFinite(squares / variance)) return;
    this.#cross.push(cross / variance);
    this.#alike += (bound.weightRounding * Math.abs(own)) / variance;
    this.#squares.push(squares / variance);
  }

  /** The slope; its error by how much the rows differ, or by the rounding where that is more. */
  slope(): Slope {
    const energy = this.#squares.reduce((a, b) => a + b, 0);
    if (energy === 0) return { value: 1, standardError: Infinity, energy, dispersion: 0, alike: 0 };
    const value = this.#cross.reduce((a, b) => a + b, 0) / energy;
    const apart = this.#cross.map((x, i) => (x - value * this.#squares[i]) ** 2);
    const spread = apart.reduce((a, b) => a + b, 0);
    const standardError = Math.max(Math.sqrt(spread), Math.sqrt(energy)) / energy;
    const ofRows = apart.map((x, i) => x / this.#squares[i]);
    const dispersion = ofRows.reduce((a, b) => a + b, 0) / ofRows.length;
    return { value, standardError, energy, dispersion, alike: this.#alike / energy };
  }
}

/** Collects how well the LSE does. */
export class LseSums {
  #rows = 0;
  #fitting = 0;
  #fittingCorrect = 0;
  #misfit = 0;
  #squares = 0;
  #correctSquares = 0;

  /** Adds a row; returns its misfit. */
  add(row: SampleRow, predicted: number): number {
    const { observedLse, correct, lseNoise } = row;
    if (observedLse === null || Number.isNaN(predicted)) return 0;
    this.#rows++;
    if (lseFits(row, predicted)) this.#fitting++;
    if (lseFits(row, correct.lse)) this.#fittingCorrect++;
    const ratio = observedLse === predicted ? 0 : ((observedLse - predicted) / lseNoise) ** 2;
    const misfit = ratio < lseCap ? ratio : lseCap;
    this.#misfit += misfit;
    this.#squares += lseDistance(observedLse, predicted) ** 2;
    this.#correctSquares += lseDistance(observedLse, correct.lse) ** 2;
    return misfit;
  }

  result(): LseAgreement {
    const count = Math.max(this.#rows, 1);
    return {
      rows: this.#rows,
      fitting: this.#fitting,
      fittingCorrect: this.#fittingCorrect,
      misfit: this.#misfit / count,
      error: Math.sqrt(this.#squares / count),
      correctError: Math.sqrt(this.#correctSquares / count),
    };
  }
}
