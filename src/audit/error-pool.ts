/** √3: an error uniform within ± a is sub-Gaussian with standard deviation a / √3. */
const root3 = Math.sqrt(3);

/**
 * A sum of bounded errors x_j·e_j, |e_j| ≤ 1, whose e_j are alike within a group (equal numbers round
 * alike) and independent between groups. Collects what is needed to bound the sum.
 */
export class ErrorPool {
  readonly #sums: Float64Array;
  readonly #squares: Float64Array;
  readonly #known: Uint8Array;
  readonly #groups: Int32Array;
  #groupCount = 0;
  #absolute = 0;

  /**
   * @param size groups are numbered 0 to size − 1
   * @param memory where to keep them: `poolBytes(size)` zero bytes from `start`, a multiple of 8
   */
  constructor(size: number, memory = new ArrayBuffer(poolBytes(size)), start = 0) {
    this.#sums = new Float64Array(memory, start, size);
    this.#squares = new Float64Array(memory, start + 8 * size, size);
    this.#groups = new Int32Array(memory, start + 16 * size, size);
    this.#known = new Uint8Array(memory, start + 20 * size, size);
  }

  /** Adds the error x·e to a group. */
  add(group: number, x: number): void {
    this.#touch(group);
    this.#sums[group]! += x;
    this.#squares[group]! += x * x;
    this.#absolute += Math.abs(x);
  }

  /** Adds every error of another pool, each times `factor`. */
  merge(other: ErrorPool, factor: number): void {
    for (let i = 0; i < other.#groupCount; i++) {
      const group = other.#groups[i]!;
      this.#touch(group);
      this.#sums[group]! += factor * other.#sums[group]!;
      this.#squares[group]! += factor * factor * other.#squares[group]!;
    }
    this.#absolute += Math.abs(factor) * other.#absolute;
  }

  clear(): void {
    for (let i = 0; i < this.#groupCount; i++) {
      const group = this.#groups[i]!;
      this.#sums[group] = 0;
      this.#squares[group] = 0;
      this.#known[group] = 0;
    }
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
      const group = this.#groups[i]!;
      const sum = Math.abs(this.#sums[group]!);
      const square = this.#squares[group]!;
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

  #touch(group: number): void {
    if (this.#known[group] === 1) return;
    this.#known[group] = 1;
    this.#groups[this.#groupCount++] = group;
  }
}

/** Bytes that a pool of so many groups takes, a multiple of 8. */
function poolBytes(size: number): number {
  return 8 * Math.ceil((21 * size) / 8);
}

/**
 * Pools of `size` groups each, in one piece of memory: of that, the system provides only what is
 * written to, and most groups of a row's pool never are.
 */
export function createErrorPools(count: number, size: number): ErrorPool[] {
  const bytes = poolBytes(size);
  const memory = new ArrayBuffer(count * bytes);
  return Array.from({ length: count }, (_, i) => new ErrorPool(size, memory, i * bytes));
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
