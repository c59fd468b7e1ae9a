/**
 * The correlation of two residuals about zero, Σ ab / √(Σ a² Σ b²): 1 for proportional ones, about 0
 * for independent ones, with a standard deviation of 1/√n for n elements. Elements that are not finite
 * are left out.
 */
export class ResidualCorrelation {
  #cross = 0;
  #squaresA = 0;
  #squaresB = 0;

  add(a: number, b: number): void {
    if (!Number.isFinite(a) || !Number.isFinite(b)) return;
    this.#cross += a * b;
    this.#squaresA += a * a;
    this.#squaresB += b * b;
  }

  /** Null where one of the residuals is zero throughout. */
  value(): number | null {
    const { sqrt } = Math;
    if (this.#squaresA === 0 || this.#squaresB === 0) return null;
    return this.#cross / (sqrt(this.#squaresA) * sqrt(this.#squaresB));
  }
}
