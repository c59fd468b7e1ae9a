import type { Operation, Trace, ValueFormat } from '../trace/index.js';
import { addText, Hasher, type Hash, hashWords } from './hasher.js';
import { Identities } from './identities.js';
import { ProductExpressions } from './product-expressions.js';

/** The name of an element of an input, in three words: elements of one name stand for one another in two launches. */
export type NameInput = (input: number, element: number) => readonly [number, number, number];

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
  readonly #constants = new Map<ValueFormat, Uint32Array>();
  readonly #hasher = new Hasher();
  readonly #identities: Identities;
  readonly #products: ProductExpressions;
  #done = 0;

  /**
   * @param architecture whose tensor cores and special function units computed
   */
  constructor(trace: Trace, architecture: string, nameInput: NameInput) {
    this.#trace = trace;
    this.#architecture = architecture;
    this.#nameInput = nameInput;
    this.#identities = new Identities(trace, (one, other) => this.#isEqual(one, other));
    this.#products = new ProductExpressions(trace, this.#hasher, this.#identities);
  }

  /** The hash of a value's expression. */
  of(value: number): Hash {
    const [i, blocks] = [hashWords * value, this.#blocks];
    return [blocks[i], blocks[i + 1], blocks[i + 2], blocks[i + 3]];
  }

  #blockOf(number: number): Uint32Array {
    let block = this.#operations[number];
    if (block === undefined) {
      const operation = this.#trace.operations[number];
      this.#operations[number] = block = new Uint32Array(hashWords);
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
    if (this.#blocks.length < hashWords * count) {
      const blocks = new Uint32Array(hashWords * trace.operation.length);
      blocks.set(this.#blocks);
      this.#blocks = blocks;
      this.#identities.grow();
    }
    for (let value = this.#done; value < count; value++) {
      const number = trace.operation[value];
      const operation = operations[number];
      if (operation.origin === 'none') continue;
      if (operation.origin === 'product') {
        const product = trace.products[trace.a[value]];
        const header = this.#blockOf(number);
        this.#products.hash(this.#blocks, product, header, (known) => this.#hashKnown(known));
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
    const identity = this.#identities.find(value, number);
    if (identity === 'known') return this.#hashKnown(value);
    if (identity !== null) {
      blocks.copyWithin(hashWords * value, hashWords * identity, hashWords * (identity + 1));
      return;
    }
    if (isExactWidening(operation, trace.operationOf(a))) {
      blocks.copyWithin(hashWords * value, hashWords * a, hashWords * (a + 1));
      return;
    }
    const block = this.#blockOf(number);
    hasher.start().addFrom(block, 0);
    switch (operation.origin) {
      case 'input':
        hasher.add(...this.#nameInput(a, b), 0);
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

  /** Hashes a value whose bits are those of this run for all inputs: as a constant. */
  #hashKnown(value: number): void {
    const { bits, high } = this.#trace;
    const format = this.#trace.formatOf(value);
    let block = this.#constants.get(format);
    if (block === undefined) {
      this.#constants.set(format, (block = new Uint32Array(hashWords)));
      this.#hasher.start();
      addText(this.#hasher, `constant ${format.name}`);
      this.#hasher.end(block, 0);
    }
    this.#hasher.start().addFrom(block, 0).add(bits[value], high[value], 1, 0);
    this.#hasher.end(this.#blocks, value);
  }

  #isEqual(one: number, other: number): boolean {
    const blocks = this.#blocks;
    for (let i = 0; i < hashWords; i++)
      if (blocks[hashWords * one + i] !== blocks[hashWords * other + i]) return false;
    return true;
  }

  #isBelow(one: number, other: number): boolean {
    const blocks = this.#blocks;
    for (let i = 0; i < hashWords; i++) {
      const [x, y] = [blocks[hashWords * one + i], blocks[hashWords * other + i]];
      if (x !== y) return x < y;
    }
    return false;
  }
}
