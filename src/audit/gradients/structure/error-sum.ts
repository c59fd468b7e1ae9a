/** What of a row's projected error is known beforehand. */
export interface RowError {
  /** Σ e·x over the row's elements. */
  readonly signed: number;
  /** Σ systematic·|x|. */
  readonly systematic: number;
  /** Σ deviation·|x|: the elements of a row may err together. */
  readonly deviation: number;
}

/**
 * Errors of rows projected on a pattern, summed up: rows err independently, but those of one unit together, and elements of
 * a row together.
 */
export class ErrorSum {
  signed = 0;
  norm = 0;
  #systematic = 0;
  #squares = 0;
  readonly #shared = new Map<number, number>();

  /** @param unit of rows that may err alike; null for a row that shares its errors with no other */
  add({ signed, systematic, deviation }: RowError, norm: number, unit: number | null): void {
    this.signed += signed;
    this.norm += norm;
    this.#systematic += systematic;
    if (unit === null) this.#squares += deviation * deviation;
    else this.#shared.set(unit, (this.#shared.get(unit) ?? 0) + deviation);
  }

  /** What the sum stays below, but for that many standard deviations; `common` is one that all rows have together. */
  tolerance(deviations: number, common: number): number {
    let squares = this.#squares + common * common;
    for (const deviation of this.#shared.values()) squares += deviation * deviation;
    return this.#systematic + deviations * Math.sqrt(squares);
  }
}
