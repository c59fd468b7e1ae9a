/** A hash of 128 bits, in four words. */
export type Hash = readonly [number, number, number, number];

/** The words of a hash. */
export const hashWords = 4;

function rotate(x: number, bits: number): number {
  return (x << bits) | (x >>> (32 - bits));
}

function avalanche(x: number): number {
  let y = x ^ (x >>> 16);
  y = Math.imul(y, 0x85ebca6b);
  y ^= y >>> 13;
  y = Math.imul(y, 0xc2b2ae35);
  return y ^ (y >>> 16);
}

/**
 * A running hash of blocks of 128 bits: the function MurmurHash3_x86_128 (A. Appleby). It is no cryptographic one: two
 * expressions that nobody has made alike on purpose have equal hashes with a chance of 2^−128.
 */
export class Hasher {
  #a = 0;
  #b = 0;
  #c = 0;
  #d = 0;
  #length = 0;

  start(): this {
    this.#a = this.#b = this.#c = this.#d = this.#length = 0;
    return this;
  }

  add(p: number, q: number, r: number, s: number): this {
    this.#a ^= Math.imul(rotate(Math.imul(p, 0x239b961b), 15), 0xab0e9789);
    this.#a = (Math.imul(rotate(this.#a, 19) + this.#b, 5) + 0x561ccd1b) | 0;
    this.#b ^= Math.imul(rotate(Math.imul(q, 0xab0e9789), 16), 0x38b34ae5);
    this.#b = (Math.imul(rotate(this.#b, 17) + this.#c, 5) + 0x0bcaa747) | 0;
    this.#c ^= Math.imul(rotate(Math.imul(r, 0x38b34ae5), 17), 0xa1e38b93);
    this.#c = (Math.imul(rotate(this.#c, 15) + this.#d, 5) + 0x96cd1c35) | 0;
    this.#d ^= Math.imul(rotate(Math.imul(s, 0xa1e38b93), 18), 0x239b961b);
    this.#d = (Math.imul(rotate(this.#d, 13) + this.#a, 5) + 0x32ac3b17) | 0;
    this.#length += 16;
    return this;
  }

  /** Adds the block of a value. */
  addFrom(blocks: Uint32Array, block: number): this {
    const i = hashWords * block;
    return this.add(blocks[i], blocks[i + 1], blocks[i + 2], blocks[i + 3]);
  }

  /** Writes the hash of what was added. */
  end(blocks: Uint32Array, block: number): void {
    const length = this.#length;
    let [a, b, c, d] = [this.#a ^ length, this.#b ^ length, this.#c ^ length, this.#d ^ length];
    a = (a + b + c + d) | 0;
    [b, c, d] = [(b + a) | 0, (c + a) | 0, (d + a) | 0];
    [a, b, c, d] = [avalanche(a), avalanche(b), avalanche(c), avalanche(d)];
    a = (a + b + c + d) | 0;
    const i = hashWords * block;
    blocks[i] = a;
    blocks[i + 1] = b + a;
    blocks[i + 2] = c + a;
    blocks[i + 3] = d + a;
  }
}

/** Adds a text, four characters a block. */
export function addText(hasher: Hasher, text: string): void {
  for (let i = 0; i < text.length; i += hashWords) {
    const code = (j: number) => (i + j < text.length ? text.charCodeAt(i + j) + 1 : 0);
    hasher.add(code(0), code(1), code(2), code(3));
  }
}

/** The two words of a text that names something. */
export function hashOfText(text: string): readonly [number, number] {
  const hasher = new Hasher().start();
  addText(hasher, text);
  const block = new Uint32Array(hashWords);
  hasher.end(block, 0);
  return [block[0], block[1]];
}
