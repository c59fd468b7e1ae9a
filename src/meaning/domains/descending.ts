/** Bits of a word, of which one stands for a number, or for a word of numbers. */
const wordBits = 32;

/** Numbers below a limit, each once, in descending order: what is put in must be less than what was taken out last. */
export class Descending {
  /** A bit for each number, and one for each word that has some. */
  readonly #words: Uint32Array;
  readonly #groups: Uint32Array;
  /** The highest group that may have numbers. */
  #top = -1;

  constructor(limit: number) {
    this.#words = new Uint32Array(Math.ceil(limit / wordBits));
    this.#groups = new Uint32Array(Math.ceil(limit / wordBits ** 2));
  }

  /** Puts a number in; nothing changes where it is in. */
  push(value: number): void {
    const [word, group] = [value >>> 5, value >>> 10];
    this.#words[word] |= 1 << (value & 31);
    this.#groups[group] |= 1 << (word & 31);
    if (group > this.#top) this.#top = group;
  }

  /** Takes the largest number out; −1 where there is none. */
  pop(): number {
    const [words, groups] = [this.#words, this.#groups];
    while (this.#top >= 0 && groups[this.#top] === 0) this.#top--;
    if (this.#top < 0) return -1;
    const word = this.#top * wordBits + 31 - Math.clz32(groups[this.#top]);
    const bit = 31 - Math.clz32(words[word]);
    words[word] &= ~(1 << bit);
    if (words[word] === 0) groups[this.#top] &= ~(1 << (word & 31));
    return word * wordBits + bit;
  }
}
