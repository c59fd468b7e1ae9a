/** Weights of a quarter of fp32's last place of the row sum, 2^-23, are added to it with the same error. */
const cellsPerUnit = 2 ** 25;

/** From so many on, additions with the same error count in full; fewer as random together. */
const many = 16;

/** Cells of a table for each key, so that few weights share one by chance; and at most, for long rows. */
const cellsPerKey = 16;
const mostCells = 2 ** 16;

/** What adding the weights of a row one after the other may be off by, in roundings of the row sum. */
export interface SumErrors {
  /** At most, from weights of which there are many alike. */
  readonly drift: number;
  /** The square mean of the others: Σ m² over groups of m alike. */
  readonly variance: number;
}

/**
 * Counts the weights of a row that fp32 adds with the same error: within a binade of the sum the rounding of
 * sum + w is decided by w. Docs/bounds.md, "Sums over keys". Cells that collide count as one.
 */
export class EqualWeights {
  readonly #counts: Uint32Array;
  readonly #shift: number;
  /** What `errors` gives: whole numbers, so that they are exact in whatever order weights come. */
  #drift = 0;
  #variance = 0;

  /** @param keys of the longest row */
  constructor(keys: number) {
    const bits = Math.ceil(Math.log2(Math.min(cellsPerKey * Math.max(keys, 2), mostCells)));
    this.#counts = new Uint32Array(2 ** bits);
    this.#shift = 32 - bits;
  }

  clear(): void {
    this.#counts.fill(0);
    this.#drift = this.#variance = 0;
  }

  /** @param weight relative to the row sum */
  add(weight: number): void {
    const cell = Math.imul(Math.round(weight * cellsPerUnit), 0x9e3779b1) >>> this.#shift;
    const count = ++this.#counts[cell];
    if (count < many) this.#variance += 2 * count - 1;
    else if (count > many) this.#drift++;
    else {
      this.#variance -= (many - 1) ** 2;
      this.#drift += many;
    }
  }

  errors(): SumErrors {
    return { drift: this.#drift, variance: this.#variance };
  }
}
