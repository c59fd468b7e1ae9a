/** √3: an error uniform within ± a is sub-Gaussian with standard deviation a / √3. */
const root3 = Math.sqrt(3);

/** The contents of an `ErrorPool`: for each group its number, and by channel its sums. */
export interface ErrorPoolState {
  readonly channels: number;
  readonly groups: Int32Array;
  readonly sums: Float64Array;
  readonly squares: Float64Array;
  readonly absolute: Float64Array;
}

/** Bounds from a pool of errors by channel, whoever collected it: see `ErrorPool`. */
export interface PooledErrors {
  readonly absolute: (channel: number) => number;
  readonly coherent: (channel: number) => number;
  readonly independent: (channel: number) => number;
  readonly squared: (channel: number) => number;
  /** The contents, not copied. */
  readonly view: () => ErrorPoolState;
}

/**
 * Sums of bounded errors x_j·e_j, |e_j| ≤ 1, whose e_j are alike within a group (equal numbers round alike)
 * and independent between groups. Collects the data that bounds of the sums need: one sum in each channel,
 * all with the same e_j and groups.
 */
export class ErrorPool implements PooledErrors {
  readonly channels: number;
  /** The place of the sums, + 1, of each group that has a slot. */
  readonly #direct: Int32Array | null;
  /** An open-addressing table of the other groups: group + 1 and the place of its sums; it grows with the groups that occur. */
  #keys = new Int32Array(16);
  #places = new Int32Array(16);
  #groups = new Int32Array(8);
  #sums: Float64Array;
  #squares: Float64Array;
  #groupCount = 0;
  readonly #absolute: Float64Array;

  /**
   * @param groups the number of groups, as far as it is known: from a smaller number the pool grows, again
   * and again
   * @param numbers the number of all possible groups, where they are so few that each gets a slot
   */
  constructor(channels = 1, groups = 8, numbers: number | null = null) {
    this.channels = channels;
    this.#direct = numbers === null ? null : new Int32Array(numbers);
    this.#sums = new Float64Array(8 * channels);
    this.#squares = new Float64Array(8 * channels);
    this.#absolute = new Float64Array(channels);
    this.#reserve(groups);
  }

  /** A copy of the contents, as data. */
  state(): ErrorPoolState {
    const { channels, groups, sums, squares, absolute } = this.view();
    return {
      channels,
      groups: groups.slice(),
      sums: sums.slice(),
      squares: squares.slice(),
      absolute: absolute.slice(),
    };
  }

  view(): ErrorPoolState {
    const { channels } = this;
    const count = this.#groupCount;
    return {
      channels,
      groups: this.#groups.subarray(0, count),
      sums: this.#sums.subarray(0, count * channels),
      squares: this.#squares.subarray(0, count * channels),
      absolute: this.#absolute,
    };
  }

  /** Adds the errors x·e of all channels to a group. */
  addAll(group: number, errors: Float64Array): void {
    const { channels } = this;
    const at = this.#place(group) * channels;
    const [sums, squares, absolute] = [this.#sums, this.#squares, this.#absolute];
    for (let channel = 0; channel < channels; channel++) {
      const x = errors[channel];
      sums[at + channel] += x;
      squares[at + channel] += x * x;
      absolute[channel] += Math.abs(x);
    }
  }

  /** Adds every error of a pool with the same number of channels, of another thread perhaps, each times its channel's factor. */
  merge({ groups, sums, squares, absolute }: ErrorPoolState, factors: ArrayLike<number>): void {
    const { channels } = this;
    this.#reserve(groups.length);
    for (let i = 0; i < groups.length; i++) {
      const at = this.#place(groups[i]) * channels;
      for (let channel = 0; channel < channels; channel++) {
        const factor = factors[channel];
        this.#sums[at + channel] += factor * sums[i * channels + channel];
        this.#squares[at + channel] += factor * factor * squares[i * channels + channel];
      }
    }
    for (let channel = 0; channel < channels; channel++)
      this.#absolute[channel] += Math.abs(factors[channel]) * absolute[channel];
  }

  /** Adds every error that another pool has in one channel to the first. */
  mergeChannel({ channels, groups, ...other }: ErrorPoolState, channel: number): void {
    this.#reserve(groups.length);
    for (let i = 0; i < groups.length; i++) {
      const at = this.#place(groups[i]) * this.channels;
      this.#sums[at] += other.sums[i * channels + channel];
      this.#squares[at] += other.squares[i * channels + channel];
    }
    this.#absolute[0] += other.absolute[channel];
  }

  clear(): void {
    if (this.#direct === null) this.#keys.fill(0);
    else for (let i = 0; i < this.#groupCount; i++) this.#direct[this.#groups[i]] = 0;
    this.#groupCount = 0;
    this.#absolute.fill(0);
  }

  /** The worst case Σ |x_j| of a channel. */
  absolute(channel = 0): number {
    return this.#absolute[channel];
  }

  /** Σ over the groups of |Σ x_j| of a channel: the worst case of errors that are alike within a group. */
  coherent(channel = 0): number {
    let sum = 0;
    for (let i = channel; i < this.#groupCount * this.channels; i += this.channels)
      sum += Math.abs(this.#sums[i]);
    return sum;
  }

  /** Σ x_j² of a channel: three times the variance of its sum where all e_j are independent. */
  independent(channel = 0): number {
    let sum = 0;
    for (let i = channel; i < this.#groupCount * this.channels; i += this.channels)
      sum += this.#squares[i];
    return sum;
  }

  /**
   * Three times the variance of a channel's sum, for e_j uniform on [−1, 1]: all groups independent, each
   * counted as coherent or as independent, whichever is more.
   */
  squared(channel = 0): number {
    let mixed = 0;
    for (let i = channel; i < this.#groupCount * this.channels; i += this.channels)
      mixed += Math.max(this.#squares[i], this.#sums[i] ** 2);
    return mixed;
  }

  /**
   * The bound that |Σ x_j e_j| of a channel exceeds with probability at most 2·exp(−deviations²/2), for e_j
   * uniform on [−1, 1]: the least of
   * - all groups independent, each counted as coherent or as independent, whichever is more;
   * - every group at its coherent worst, the rest of each e_j independent;
   * - the worst case Σ |x_j|.
   */
  tolerance(deviations: number, channel = 0): number {
    return Math.min(
      (deviations / root3) * Math.sqrt(this.squared(channel)),
      this.coherent(channel) + (deviations / root3) * Math.sqrt(this.independent(channel)),
      this.absolute(channel),
    );
  }

  /** The place of a group; its sums are 0 when it is new. */
  #place(group: number): number {
    if (this.#direct !== null) {
      const known = this.#direct[group];
      return known > 0 ? known - 1 : (this.#direct[group] = this.#addGroup(group) + 1) - 1;
    }
    const keys = this.#keys;
    const mask = keys.length - 1;
    let slot = Math.imul(group, 0x9e3779b1) & mask;
    for (let key; (key = keys[slot]) !== 0; slot = (slot + 1) & mask)
      if (key === group + 1) return this.#places[slot];
    if (this.#groupCount === this.#groups.length) {
      this.#grow(2 * this.#groups.length);
      return this.#place(group);
    }
    keys[slot] = group + 1;
    return (this.#places[slot] = this.#addGroup(group));
  }

  /** Adds a group, whose sums are 0; returns its place. */
  #addGroup(group: number): number {
    if (this.#groupCount === this.#groups.length) this.#grow(2 * this.#groups.length);
    const place = this.#groupCount++;
    this.#groups[place] = group;
    const { channels } = this;
    for (let at = place * channels; at < (place + 1) * channels; at++)
      this.#sums[at] = this.#squares[at] = 0;
    return place;
  }

  /** Makes room for that many groups at once. */
  #reserve(groups: number): void {
    if (groups > this.#groups.length) this.#grow(2 ** Math.ceil(Math.log2(groups)));
  }

  /** @param length the number of groups to make room for, a power of two */
  #grow(length: number): void {
    const grown = <T extends Int32Array | Float64Array>(to: T, from: T): T => (to.set(from), to);
    this.#groups = grown(new Int32Array(length), this.#groups);
    this.#sums = grown(new Float64Array(length * this.channels), this.#sums);
    this.#squares = grown(new Float64Array(length * this.channels), this.#squares);
    if (this.#direct !== null) return;
    const mask = 2 * length - 1;
    this.#keys = new Int32Array(mask + 1);
    this.#places = new Int32Array(mask + 1);
    for (let place = 0; place < this.#groupCount; place++) {
      const group = this.#groups[place];
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
  /** A group is the word of an fp32 number, shifted by `shift` bits, less the lowest. */
  readonly shift: number;
  readonly lowest: number;
  readonly #float = new Float32Array(1);
  readonly #word = new Uint32Array(this.#float.buffer);

  /** Covers 2^lowestExponent to 2^(highestExponent + 1); numbers outside join the nearest group. */
  constructor(bits: number, lowestExponent: number, highestExponent: number) {
    this.shift = 23 - bits;
    this.lowest = (127 + lowestExponent) << bits;
    this.size = (highestExponent - lowestExponent + 1) << bits;
  }

  /** The group of x ≥ 0. */
  group(x: number): number {
    this.#float[0] = x;
    const index = (this.#word[0] >>> this.shift) - this.lowest;
    return index < 0 ? 0 : index >= this.size ? this.size - 1 : index;
  }
}
