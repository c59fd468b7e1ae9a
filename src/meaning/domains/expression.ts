import type { Operation, ProductTrace, Trace } from '../trace/index.js';

/** A hash of 128 bits, in four words. */
export type Hash = readonly [number, number, number, number];

/** The name of an element of an input, in three words: elements of one name stand for one another in two launches. */
export type NameInput = (input: number, element: number) => readonly [number, number, number];

const words = 4;

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
class Hasher {
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
    const i = words * block;
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
    const i = words * block;
    blocks[i] = a;
    blocks[i + 1] = b + a;
    blocks[i + 2] = c + a;
    blocks[i + 3] = d + a;
  }
}

/** Adds a text, four characters a block. */
function addText(hasher: Hasher, text: string): void {
  for (let i = 0; i < text.length; i += words) {
    const code = (j: number) => (i + j < text.length ? text.charCodeAt(i + j) + 1 : 0);
    hasher.add(code(0), code(1), code(2), code(3));
  }
}

/** The two words of a text that names something. */
export function hashOfText(text: string): readonly [number, number] {
  const hasher = new Hasher().start();
  addText(hasher, text);
  const block = new Uint32Array(words);
  hasher.end(block, 0);
  return [block[0], block[1]];
}

/** Whether an operation keeps the number of its operand, and the operand's format fits into its own. */
function isExactWidening({ origin, name, format }: Operation, from: Operation): boolean {
  return (
    origin === 'same' &&
    name.startsWith('cvt.') &&
    !name.includes('ftz') &&
    !from.format.isInteger &&
    from.format.bytes < format.bytes &&
    format.bytes >= 4
  );
}

/** Whether the first two operands may be exchanged: the bits are the same then, a NaN's too, which has one pattern. */
function isCommutative({ origin, function: name }: Operation): boolean {
  return (
    origin === 'choice' ||
    (origin === 'function' && (name === 'add' || name === 'multiply' || name === 'fma'))
  );
}

/** The name by which an operation's bits are a function of its operands': units whose arithmetic an architecture decides carry it. */
function identityOf({ origin, name }: Operation, architecture: string): string {
  if (origin === 'product') return `${name} ${architecture}`;
  return name.includes('approx') || name.includes('.full') ? `${name} ${architecture}` : name;
}

/**
 * Hashes of the expressions that made the values of a trace: operation with rounding, operands, and the names of inputs.
 * Values of equal hashes have equal bits for all inputs for which the run decides alike (but for the chance above): the bits of a
 * value are a function of the bits of its operands, and an input's are its name's.
 */
export class ExpressionDomain {
  #blocks = new Uint32Array(0);
  readonly #trace: Trace;
  readonly #architecture: string;
  readonly #nameInput: NameInput;
  readonly #operations: Uint32Array[] = [];
  readonly #hasher = new Hasher();
  #done = 0;

  /**
   * @param architecture whose tensor cores and special function units computed
   */
  constructor(trace: Trace, architecture: string, nameInput: NameInput) {
    this.#trace = trace;
    this.#architecture = architecture;
    this.#nameInput = nameInput;
  }

  /** The hash of a value's expression. */
  of(value: number): Hash {
    const [i, blocks] = [words * value, this.#blocks];
    return [blocks[i], blocks[i + 1], blocks[i + 2], blocks[i + 3]];
  }

  #blockOf(number: number): Uint32Array {
    let block = this.#operations[number];
    if (block === undefined) {
      const operation = this.#trace.operations[number];
      this.#operations[number] = block = new Uint32Array(words);
      this.#hasher.start();
      addText(this.#hasher, identityOf(operation, this.#architecture));
      addText(this.#hasher, ` ${operation.format.name} ${operation.limit ?? ''}`);
      this.#hasher.end(block, 0);
    }
    return block;
  }

  /** Takes the values that have been made since the last call. */
  extend(): void {
    const trace = this.#trace;
    const { count, operations } = trace;
    if (this.#blocks.length < words * count) {
      const blocks = new Uint32Array(words * trace.operation.length);
      blocks.set(this.#blocks);
      this.#blocks = blocks;
    }
    for (let value = this.#done; value < count; value++) {
      const number = trace.operation[value];
      const operation = operations[number];
      if (operation.origin === 'none') continue;
      if (operation.origin === 'product') {
        const product = trace.products[trace.a[value]];
        this.#hashProduct(number, product);
        value = product.first + product.m * product.n - 1;
        continue;
      }
      this.#hashValue(value, number);
    }
    this.#done = count;
  }

  #hashValue(value: number, number: number): void {
    const trace = this.#trace;
    const operation = trace.operations[number];
    const [a, b, c] = [trace.a[value], trace.b[value], trace.c[value]];
    const [blocks, hasher] = [this.#blocks, this.#hasher];
    if (isExactWidening(operation, trace.operationOf(a))) {
      blocks.copyWithin(words * value, words * a, words * (a + 1));
      return;
    }
    const block = this.#blockOf(number);
    hasher.start().addFrom(block, 0);
    switch (operation.origin) {
      case 'input':
        hasher.add(...this.#nameInput(a, b), 0);
        break;
      case 'constant':
        hasher.add(trace.bits[value], trace.high[value], 1, 0);
        break;
      case 'scale':
        hasher.addFrom(blocks, a).add(c, 2, 0, 0);
        break;
      case 'same':
        hasher.addFrom(blocks, a);
        if (b !== 0) hasher.addFrom(blocks, b);
        break;
      default: {
        const isSwapped = isCommutative(operation) && this.#isBelow(b, a);
        hasher.addFrom(blocks, isSwapped ? b : a).addFrom(blocks, isSwapped ? a : b);
        // The winner of a choice is one of its operands.
        if (operation.origin === 'function' && c !== 0) hasher.addFrom(blocks, c);
      }
    }
    hasher.end(blocks, value);
  }

  #isZero(value: number): boolean {
    const trace = this.#trace;
    return trace.bits[value] === 0 && trace.operationOf(value).origin === 'constant';
  }

  #isBelow(one: number, other: number): boolean {
    const blocks = this.#blocks;
    for (let i = 0; i < words; i++) {
      const [x, y] = [blocks[words * one + i], blocks[words * other + i]];
      if (x !== y) return x < y;
    }
    return false;
  }

  /** Hashes rows of A and of B once, and each element from a row, a row of B and C. */
  #hashProduct(number: number, product: ProductTrace): void {
    const { m, n, k, a, b, c, isNegated, scales, first } = product;
    const [blocks, hasher] = [this.#blocks, this.#hasher];
    const rowsOf = (values: Uint32Array, rows: number, factors: Uint32Array | undefined) => {
      const hashes = new Uint32Array(words * rows);
      for (let row = 0; row < rows; row++) {
        hasher.start();
        for (let i = row * k; i < (row + 1) * k; i++) hasher.addFrom(blocks, values[i]);
        const perRow = factors === undefined ? 0 : factors.length / rows;
        for (let i = row * perRow; i < (row + 1) * perRow; i++) hasher.addFrom(blocks, factors![i]);
        hasher.end(hashes, row);
      }
      return hashes;
    };
    const left = rowsOf(a, m, scales?.a);
    const right = rowsOf(b, n, scales?.b);
    const block = this.#blockOf(number);
    for (let i = 0; i < m * n; i++) {
      hasher
        .start()
        .addFrom(block, 0)
        .add(k, isNegated ? 1 : 0, scales?.block ?? 0, 0);
      hasher.addFrom(left, Math.floor(i / n)).addFrom(right, i % n);
      // A sum that starts from a constant zero is one that starts from nothing.
      if (c !== null && !this.#isZero(c[i])) hasher.addFrom(blocks, c[i]);
      hasher.end(blocks, first + i);
    }
  }
}
