import type { RowProjections, Variances } from './pooled-projections.js';

/** Which of the instruments gives a row's slope. */
const slope = 0;

/**
 * How far the slopes of a head's rows scatter: the root mean square of each row's regression slope of the
 * output on the oracle, less one. A factor that each row gets wrong in its own way, as a reciprocal kept in
 * bf16 does, leaves their mean alone. A row weighs by how well its slope is known.
 */
export class SlopeDispersion {
  readonly #falseAlarmRate: number;
  #measured = 0;
  #systematic = 0;
  #weight = 0;
  readonly #units = new Map<number, number>();

  /** `falseAlarmRate` is that of one head. */
  constructor(falseAlarmRate: number) {
    this.#falseAlarmRate = falseAlarmRate;
  }

  /** Rows of one unit may err alike. */
  add({ signed, norm, systematic }: RowProjections, variances: Variances, unit: number): void {
    const weight = norm[slope]!;
    if (!(weight > 0)) return;
    const variance =
      variances.weights[slope]! + variances.outputs[slope]! + variances.others[slope]!;
    this.#measured += signed[slope]! ** 2 / weight;
    this.#systematic += systematic[slope]! ** 2 / weight;
    this.#weight += weight;
    this.#units.set(unit, (this.#units.get(unit) ?? 0) + variance / weight);
  }

  clear(): void {
    this.#measured = this.#systematic = this.#weight = 0;
    this.#units.clear();
  }

  /**
   * The root mean square slope, and what it exceeds with the stated probability only: the tail of a sum of
   * squares of sub-Gaussian variables (Hsu, Kakade and Zhang 2012, Theorem 2.1), as in the spread.
   */
  result(): { readonly statistic: number; readonly threshold: number } {
    const t = Math.log(1 / this.#falseAlarmRate);
    let trace = 0;
    let squares = 0;
    let largest = 0;
    for (const variance of this.#units.values()) {
      trace += variance;
      squares += variance * variance;
      largest = Math.max(largest, variance);
    }
    const most = trace + 2 * Math.sqrt(squares * t) + 2 * largest * t;
    const mean = (energy: number) => (this.#weight > 0 ? Math.sqrt(energy / this.#weight) : 0);
    return {
      statistic: mean(this.#measured),
      threshold: mean((Math.sqrt(most) + Math.sqrt(this.#systematic)) ** 2),
    };
  }
}
