import { ErrorPool } from './error-pool.js';
import { rowShareOfLargest, type RowProjections, type Variances } from './pooled-projections.js';

/** Which of the instruments gives a row's slope. */
const slope = 0;

/** Variances of the slopes of rows that may err alike, as they weigh: by their outputs' roundings, by all else. */
interface Unit {
  readonly ofOutputs: number;
  readonly ofRest: number;
}

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
  readonly #units = new Map<number, Unit>();
  readonly #outputs: ErrorPool;
  readonly #ones: Float64Array;
  #ofOutputs = 0;

  /** `falseAlarmRate` is that of one head; rows are projected by so many instruments. */
  constructor(falseAlarmRate: number, instruments: number) {
    this.#falseAlarmRate = falseAlarmRate;
    this.#outputs = new ErrorPool(instruments);
    this.#ones = new Float64Array(instruments).fill(1);
  }

  /** Rows of one unit may err alike. */
  add(row: RowProjections, variances: Variances, unit: number): void {
    const { signed, norm, systematic, known: ofKnown } = row;
    const weight = norm[slope];
    if (!(weight > 0)) return;
    // What the roundings of P come to where they are known counts where that is more than by chance.
    const ofWeights = Math.max(
      rowShareOfLargest(row, slope) * variances.weights[slope],
      ofKnown[slope] ** 2,
    );
    const ofRest = ofWeights + variances.others[slope];
    this.#outputs.merge(row.outputs, this.#ones);
    this.#ofOutputs += row.outputs.squared(slope);
    this.#measured += signed[slope] ** 2 / weight;
    this.#systematic += systematic[slope] ** 2 / weight;
    this.#weight += weight;
    const known = this.#units.get(unit) ?? { ofOutputs: 0, ofRest: 0 };
    this.#units.set(unit, {
      ofOutputs: known.ofOutputs + variances.outputs[slope] / weight,
      ofRest: known.ofRest + ofRest / weight,
    });
  }

  clear(): void {
    this.#measured = this.#systematic = this.#weight = this.#ofOutputs = 0;
    this.#outputs.clear();
    this.#units.clear();
  }

  /**
   * The root mean square slope, and what it exceeds with the stated probability only: the tail of a sum of
   * squares of sub-Gaussian variables (Hsu, Kakade and Zhang 2012, Theorem 2.1), as in the spread.
   */
  result(): { readonly statistic: number; readonly threshold: number } {
    const t = Math.log(1 / this.#falseAlarmRate);
    // Rows whose outputs round alike do not scatter independently by these roundings: the variance of the sum of
    // all slopes, against the sum of their variances, tells how many of them err as one.
    const alike = Math.max(1, this.#outputs.squared(slope) / this.#ofOutputs || 1);
    let trace = 0;
    let squares = 0;
    let largest = 0;
    for (const { ofOutputs, ofRest } of this.#units.values()) {
      trace += ofRest + ofOutputs;
      squares += ofRest ** 2 + 2 * ofRest * ofOutputs + alike * ofOutputs ** 2;
      largest = Math.max(largest, ofRest + alike * ofOutputs);
    }
    const most = trace + 2 * Math.sqrt(squares * t) + 2 * largest * t;
    const mean = (energy: number) => (this.#weight > 0 ? Math.sqrt(energy / this.#weight) : 0);
    return {
      statistic: mean(this.#measured),
      threshold: mean((Math.sqrt(most) + Math.sqrt(this.#systematic)) ** 2),
    };
  }
}
