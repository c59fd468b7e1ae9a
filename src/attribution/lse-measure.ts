/** An error of LSEs over all rows, in units of natural logarithm. */
export interface LseMeasure {
  /** Rows that were measured: those in which the LSE and the exact one are finite. */
  readonly rows: number;
  /** Rows in which one of both is not finite; rows without keys, where both are −∞, count nowhere. */
  readonly nonFinite: number;
  /** Largest magnitude. */
  readonly max: number;
  readonly rms: number;
  /** With its sign. */
  readonly mean: number;
}

/** An error of LSEs being measured, row by row. */
export class LseMeter {
  #rows = 0;
  #nonFinite = 0;
  #max = 0;
  #squares = 0;
  #sum = 0;

  add(lse: number, exact: number): void {
    if (lse === -Infinity && exact === -Infinity) return;
    const error = lse - exact;
    if (!Number.isFinite(error)) {
      this.#nonFinite++;
      return;
    }
    this.#rows++;
    this.#max = Math.max(this.#max, Math.abs(error));
    this.#squares += error * error;
    this.#sum += error;
  }

  measure(): LseMeasure {
    const rows = Math.max(this.#rows, 1);
    return {
      rows: this.#rows,
      nonFinite: this.#nonFinite,
      max: this.#max,
      rms: Math.sqrt(this.#squares / rows),
      mean: this.#sum / rows,
    };
  }
}
