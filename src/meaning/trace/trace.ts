import type { Limit, RealFunction } from './real-function.js';
import type { RawWord } from './raw-word.js';
import type { ValueFormat } from './value-format.js';

/** Numbers of values that stand for more than one: no value, one that is lost, and one that has decided something. */
export const [noValue, lostValue, decidedValue] = [0, 1, 2] as const;

/**
 * What made a value:
 * - `input`: the launch; operands are the number of the tensor and that of the element;
 * - `constant`: nothing that varies: bits of the program or of a parameter;
 * - `function`: a real function of up to three values, rounded;
 * - `choice`: the operand whose bits won, the last of the operands;
 * - `product`: a product of matrices, by its number and that of the element;
 * - `scale`: an operand times two to a power, by its exponent's bits;
 * - `same`: an operand with other bits: converted, or cut.
 */
export type ValueOrigin =
  'input' | 'constant' | 'function' | 'choice' | 'product' | 'scale' | 'same' | 'none';

/** An instruction of the program, or an element of it, that makes values. */
export interface Operation {
  readonly origin: ValueOrigin;
  /** The instruction on one element, as `fma.rn.f32`: what its bits are a function of, besides its operands. */
  readonly name: string;
  readonly function: RealFunction | null;
  readonly limit: Limit;
  readonly format: ValueFormat;
  /** The place in the program: `line 120: fma.rn.f32`; empty for inputs and constants. */
  readonly site: string;
}

/** A product of matrices, by numbers of values. */
export interface ProductTrace {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** [m][k] and [n][k]. */
  readonly a: Uint32Array;
  readonly b: Uint32Array;
  /** [m][n]; null where D starts from zero. */
  readonly c: Uint32Array | null;
  /** Whether the products are subtracted. */
  readonly isNegated: boolean;
  /** Values of the factors, [m or n][k / block]; null where there are none. */
  readonly scales: {
    readonly a: Uint32Array;
    readonly b: Uint32Array;
    readonly block: number;
  } | null;
  /** The number of D's first value; the others follow, [m][n]. */
  readonly first: number;
}

const columns = ['operation', 'a', 'b', 'c', 'bits', 'high'] as const;
type Column = (typeof columns)[number];

/** An operation that is no instruction. */
const plain = { function: null, limit: null, site: '' } as const;

const firstCapacity = 2 ** 16;
/** A tag has three bits for the place in a value. */
const mostValues = 2 ** 29;

/** Thrown where a run makes more values than tags can tell apart. */
export class TooManyValues extends Error {}

/**
 * The values of a run in the order in which they were made, in columns: the operation, up to three operands, and the
 * bits. Operands come before what is made of them. The first three stand for none, lost and decided ones.
 */
export class Trace {
  readonly operations: Operation[] = [];
  readonly products: ProductTrace[] = [];
  operation = new Uint32Array(firstCapacity);
  a = new Uint32Array(firstCapacity);
  b = new Uint32Array(firstCapacity);
  c = new Uint32Array(firstCapacity);
  bits = new Uint32Array(firstCapacity);
  /** High words of values of 64 bits. */
  high = new Uint32Array(firstCapacity);
  count = 0;
  /** The values that are bits of numbers after integer operations. */
  readonly rawWords = new Map<number, RawWord>();
  readonly #known = new Map<string, number>();
  readonly #constants = new Map<ValueFormat, Map<number, number>>();
  readonly #wideConstants = new Map<string, number>();
  readonly #ofConstants = new Map<ValueFormat, number>();
  #where = '';

  constructor(format: ValueFormat) {
    const none = this.addOperation({ ...plain, origin: 'none', name: '', format });
    for (let i = noValue; i <= decidedValue; i++) this.add(none, 0, 0, 0, 0);
  }

  /**
   * Begins another launch, whose program has lines of its own.
   *
   * @param where what the places of its operations begin with
   */
  beginLaunch(where: string): void {
    this.#where = where;
    this.#known.clear();
  }

  /** Takes an operation into the table; returns its number. */
  addOperation(operation: Operation): number {
    const site = operation.site === '' ? '' : this.#where + operation.site;
    return this.operations.push({ ...operation, site }) - 1;
  }

  /** The number of an operation that may have been taken into the table before, by its place, its name, origin and format. */
  knownOperation(operation: Operation): number {
    const { site, name, origin, format } = operation;
    const key = `${site} ${name} ${origin} ${format.name}`;
    let known = this.#known.get(key);
    if (known === undefined) this.#known.set(key, (known = this.addOperation(operation)));
    return known;
  }

  #grow(): void {
    const capacity = 2 * this.operation.length;
    if (capacity > mostValues) throw new TooManyValues();
    for (const column of columns) {
      const grown = new Uint32Array(capacity);
      grown.set(this[column as Column]);
      this[column as Column] = grown;
    }
  }

  /** Appends a value of up to 32 bits; returns its number. */
  add(operation: number, a: number, b: number, c: number, bits: number): number {
    const at = this.count;
    if (at === this.operation.length) this.#grow();
    this.operation[at] = operation;
    this.a[at] = a;
    this.b[at] = b;
    this.c[at] = c;
    this.bits[at] = bits;
    this.count = at + 1;
    return at;
  }

  /** Appends a value of 64 bits; returns its number. */
  addWide(operation: number, operands: readonly [number, number, number], bits: bigint): number {
    const at = this.add(operation, ...operands, Number(bits & 0xffffffffn));
    this.high[at] = Number(bits >> 32n);
    return at;
  }

  #operationOfConstant(format: ValueFormat): number {
    let known = this.#ofConstants.get(format);
    if (known === undefined) {
      const constant = { ...plain, origin: 'constant', name: format.name, format } as const;
      this.#ofConstants.set(format, (known = this.addOperation(constant)));
    }
    return known;
  }

  /** The number of a constant, the same for the same bits. */
  constant(format: ValueFormat, bits: number, high = 0): number {
    if (format.bytes === 8) {
      const key = `${format.name} ${high} ${bits}`;
      let wide = this.#wideConstants.get(key);
      if (wide === undefined) {
        const value = (BigInt(high >>> 0) << 32n) | BigInt(bits >>> 0);
        wide = this.addWide(this.#operationOfConstant(format), [0, 0, 0], value);
        this.#wideConstants.set(key, wide);
      }
      return wide;
    }
    let known = this.#constants.get(format);
    if (known === undefined) this.#constants.set(format, (known = new Map()));
    let value = known.get(bits);
    if (value === undefined) {
      value = this.add(this.#operationOfConstant(format), 0, 0, 0, bits);
      known.set(bits, value);
    }
    return value;
  }

  /** The operation that made a value. */
  operationOf(value: number): Operation {
    return this.operations[this.operation[value]];
  }

  formatOf(value: number): ValueFormat {
    return this.operationOf(value).format;
  }

  /** The number that a value's bits are. */
  numberOf(value: number): number {
    return this.formatOf(value).decode(this.bits[value], this.high[value]);
  }

  /** Appends a product with the bits of D, words of [m][n], or numbers of 64 bits. */
  addProduct(
    operation: number,
    product: Omit<ProductTrace, 'first'>,
    d: Uint32Array | BigUint64Array,
  ): ProductTrace {
    const number = this.products.length;
    const whole = { ...product, first: this.count };
    this.products.push(whole);
    if (d instanceof BigUint64Array)
      d.forEach((bits, i) => this.addWide(operation, [number, i, 0], bits));
    else for (let i = 0; i < d.length; i++) this.add(operation, number, i, 0, d[i]);
    return whole;
  }
}
