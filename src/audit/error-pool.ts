/** √3: an error uniform within ± a is sub-Gaussian with standard deviation a / √3. */
const root3 = Math.sqrt(3);

/**
 * A sum of bounded errors x_j·e_j, |e_j| ≤ 1, whose e_j are alike within a group (equal numbers round
 * alike) and independent between groups. Collects what is needed to bound the sum.
 */
export class ErrorPool {
  /** Open addressing: group + 1 and where its sums are; as large as the groups that occur ask for. */
  #keys = new Int32Array(16);
  #places = new Int32Array(16);
  #groups = new Int32Array(8);
  #sums = new Float64Array(8);
  #squares = new Float64Array(8);
  #groupCount = 0;
  #absolute = 0;

  /** Adds the error x·e to a group. */
  add(group: number, x: number): void {
    const place = this.#place(group);
    this.#sums[place]! += x;
    this.#squares[place]! += x * x;
    this.#absolute += Math.abs(x);
  }

  /** Adds every error of another pool, each times `factor`. */
  merge(other: ErrorPool, factor: number): void {
    for (let i = 0; i < other.#groupCount; i++) {
      const place = this.#place(other.#groups[i]!);
      this.#sums[place]! += factor * other.#sums[i]!;
      this.#squares[place]! += factor * factor * other.#squares[i]!;
    }
    this.#absolute += Math.abs(factor) * other.#absolute;
  }

  clear(): void {
    this.#keys.fill(0);
    this.#groupCount = 0;
    this.#absolute = 0;
  }

  /**
   * What |Σ x_j e_j| exceeds with probability at most 2·exp(−deviations²/2), for e_j uniform on
   * [−1, 1]: the least of
   * - all groups independent, each counted as coherent or as independent, whichever is more;
   * - every group at its coherent worst, the rest of each e_j independent;
   * - the worst case Σ |x_j|.
   */
  tolerance(deviations: number): number {
    let mixed = 0;
    let coherent = 0;
    let squares = 0;
    for (let i = 0; i < this.#groupCount; i++) {
      const sum = Math.abs(this.#sums[i]!);
      const square = this.#squares[i]!;
      mixed += Math.max(square, sum * sum);
      coherent += sum;
      squares += square;
    }
    return Math.min(
      (deviations / root3) * Math.sqrt(mixed),
      coherent + (deviations / root3) * Math.sqrt(squares),
      this.#absolute,
    );
  }

  /** Where a group's sums are, which are 0 when it is new. */
  #place(group: number): number {
    const mask = this.#keys.length - 1;
    let slot = Math.imul(group, 0x9e3779b1) & mask;
    for (let key; (key = this.#keys[slot]!) !== 0; slot = (slot + 1) & mask)
      if (key === group + 1) return this.#places[slot]!;
    if (this.#groupCount === this.#groups.length) {
      this.#grow();
      return this.#place(group);
    }
    const place = this.#groupCount++;
    this.#keys[slot] = group + 1;
    this.#places[slot] = place;
    this.#groups[place] = group;
    this.#sums[place] = 0;
    this.#squares[place] = 0;
    return place;
  }

  #grow(): void {
    const length = 2 * this.#groups.length;
    const grown = <T extends Int32Array | Float64Array>(to: T, from: T): T => (to.set(from), to);
    this.#groups = grown(new Int32Array(length), this.#groups);
    this.#sums = grown(new Float64Array(length), this.#sums);
    this.#squares = grown(new Float64Array(length), this.#squares);
    const mask = 2 * length - 1;
    this.#keys = new Int32Array(mask + 1);
    this.#places = new Int32Array(mask + 1);
    for (let place = 0; place < this.#groupCount; place++) {
      const group = this.#groups[place]!;
      let slot = Math.imul(group, 0x9e3779b1) & mask;
      while (this.#keys[slot] !== 0) slot = (slot + 1) & mask;
      this.#keys[slot] = group + 1;
      this.#places[slot] = place;
    }
  }
}

/** Numbers the groups of nearly equal positive numbers: `bits` groups per octave as a power of two. */
export class NearlyEqual {
  readonly size: number;
  readonly #shift: number;
  readonly #lowest: number;
  readonly #float = new Float32Array(1);
  readonly #word = new Uint32Array(this.#float.buffer);

  /** Covers 2^lowestExponent to 2^(highestExponent + 1); what is outside joins the nearest group. */
  constructor(bits: number, lowestExponent: number, highestExponent: number) {
    this.#shift = 23 - bits;
    this.#lowest = (127 + lowestExponent) << bits;
    this.size = (highestExponent - lowestExponent + 1) << bits;
  }

  /** The group of x ≥ 0. */
  group(x: number): number {
    this.#float[0] = x;
    const index = (this.#word[0]! >>> this.#shift) - this.#lowest;
    return index < 0 ? 0 : index >= this.size ? this.size - 1 : index;
  }
}
