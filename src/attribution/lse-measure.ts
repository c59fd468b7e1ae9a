import { RunningSpread, type Spread } from './running-spread.js';

/** An error of LSEs over all rows, in units of natural logarithm. */
export interface LseMeasure extends Spread {
  /** Rows that were measured: those in which the LSE and the exact one are finite. */
  readonly rows: number;
  /** Rows in which one of both is not finite; rows without keys, where both are −∞, count nowhere. */
  readonly nonFinite: number;
}

/** An error of LSEs being measured, row by row. */
export class LseMeter {
  readonly #errors = new RunningSpread();
  #nonFinite = 0;

  add(lse: number, exact: number): void {
    if (lse === -Infinity && exact === -Infinity) return;
    const error = lse - exact;
    if (Number.isFinite(error)) this.#errors.add(error);
    else this.#nonFinite++;
  }

  measure(): LseMeasure {
    return { rows: this.#errors.count, nonFinite: this.#nonFinite, ...this.#errors.measure() };
  }
}
