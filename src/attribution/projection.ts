/** Share of a whole in the sense of least squares: Σ part · whole / Σ whole², 0 without a whole. */
export class Projection {
  #cross = 0;
  #squares = 0;

  /** Adds an element; one that is not finite counts for nothing. */
  add(part: number, whole: number): void {
    if (!Number.isFinite(part) || !Number.isFinite(whole)) return;
    this.#cross += part * whole;
    this.#squares += whole * whole;
  }

  share(): number {
    return this.#squares === 0 ? 0 : this.#cross / this.#squares;
  }
}
