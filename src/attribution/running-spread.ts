/** Largest magnitude, root mean square and mean of something over the elements. */
export interface Spread {
  readonly max: number;
  readonly rms: number;
  /** With its sign. */
  readonly mean: number;
}

/** A spread being measured, number by number. */
export class RunningSpread {
  /** Numbers so far, and the largest magnitude among them; 0 for none. */
  count = 0;
  max = 0;
  #squares = 0;
  #sum = 0;

  /** @param x finite */
  add(x: number): void {
    this.count++;
    this.max = Math.max(this.max, Math.abs(x));
    this.#squares += x * x;
    this.#sum += x;
  }

  /** The spread of the numbers so far; zeros for none. */
  measure(): Spread {
    const count = Math.max(this.count, 1);
    return { max: this.max, rms: Math.sqrt(this.#squares / count), mean: this.#sum / count };
  }
}
