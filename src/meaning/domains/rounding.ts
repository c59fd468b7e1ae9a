import {
  addDoubleDouble,
  doubleDouble,
  type DoubleDouble,
  subtractDoubleDouble,
} from '../../arith/index.js';
import { evaluateReal, limited } from '../rules/index.js';
import { decidedValue, type Operation, type ProductTrace, type Trace } from '../trace/index.js';
import { Descending } from './descending.js';
import type { RealDomain } from './real.js';
import { realProduct, type RealMatrix } from './real-product.js';

/** The error of one value and its parts, absolute. */
export interface RoundingShares {
  /** The value's bits less its real value. */
  readonly error: number;
  /** The part of each operation of the trace that rounded something on the way, by its number. */
  readonly parts: ReadonlyMap<number, number>;
}

/** A row of numbers. */
function matrix(length: number): RealMatrix {
  return { high: new Float64Array(length), low: new Float64Array(length) };
}

/**
 * Attributes the error of values, bits less real value, to the operations that rounded on the way. The error of a result is its own
 * rounding, bits − f(operands' bits), and for each operand the difference that its error makes to f while those before it are real and
 * those behind it bits: these differences telescope, so that the parts sum to the error up to the accuracy of double-doubles.
 */
export class RoundingDomain {
  readonly #trace: Trace;
  readonly #real: RealDomain;
  /** The values that wait, and by which factor the error of each passes on; 0 of those that do not wait. */
  #waiting = new Descending(0);
  #weights = new Float64Array(0);
  #passes = 0;
  /** Whether an operation's values are those of the launch or of the program, which have no error, by its number. */
  readonly #isGiven: boolean[];
  /** A row of A and one of B, and an element of C and of D. */
  #left = matrix(0);
  #right = matrix(0);
  readonly #start = matrix(1);
  readonly #sum = matrix(1);

  /** @param trace of a whole run, whose real values the domain has taken */
  constructor(trace: Trace, real: RealDomain) {
    this.#trace = trace;
    this.#real = real;
    this.#isGiven = trace.operations.map(
      ({ origin }) => origin === 'input' || origin === 'constant',
    );
  }

  /** Bits less real value. */
  errorOf(value: number): number {
    return this.#trace.numberOf(value) - this.#real.high[value] - this.#real.low[value];
  }

  /** How often an error was passed on to an operand: what attributing has cost so far. */
  get passes(): number {
    return this.#passes;
  }

  /** The parts of a value's error; null where its bits or its real value are no finite number. */
  sharesOf(value: number): RoundingShares | null {
    const error = this.errorOf(value);
    return Number.isFinite(error) ? this.sharesOfSum([value], [1]) : null;
  }

  /**
   * The parts of a sum of errors, as those of its terms sum: each value that they have in common is looked at once.
   *
   * @param values whose bits and real values are finite numbers
   * @param weights by which their errors count
   */
  sharesOfSum(values: readonly number[], weights: readonly number[]): RoundingShares {
    const error = values.reduce((sum, value, i) => sum + weights[i] * this.errorOf(value), 0);
    const { operation, count } = this.#trace;
    if (this.#weights.length < count) {
      this.#weights = new Float64Array(count);
      this.#waiting = new Descending(count);
    }
    const parts = new Map<number, number>();
    values.forEach((value, i) => this.#pass(value, weights[i], 1));
    for (let next; (next = this.#waiting.pop()) !== -1;) {
      const weight = this.#weights[next];
      this.#weights[next] = 0;
      const own = this.#passOn(next, weight);
      if (own === 0 || weight === 0) continue;
      parts.set(operation[next], (parts.get(operation[next]) ?? 0) + weight * own);
    }
    return { error, parts };
  }

  #bits(value: number): DoubleDouble {
    return doubleDouble(this.#trace.numberOf(value));
  }

  /** Passes part of an error on to an operand. */
  #pass(operand: number, weight: number, slope: number): void {
    if (operand <= decidedValue || slope === 0) return;
    this.#passes++;
    this.#waiting.push(operand);
    this.#weights[operand] += weight * slope;
  }

  /** Passes a value's error on to its operands, times a weight; returns its own rounding. */
  #passOn(value: number, weight: number): number {
    const trace = this.#trace;
    const operation = trace.operationOf(value);
    const [a, b, c] = [trace.a[value], trace.b[value], trace.c[value]];
    switch (operation.origin) {
      case 'input':
      case 'constant':
      case 'none':
        return 0;
      case 'choice':
        this.#pass(c, weight, 1);
        return 0;
      case 'same':
        this.#pass(a, weight, 1);
        return trace.numberOf(value) - trace.numberOf(a);
      case 'scale': {
        const scale = 2 ** (c | 0);
        this.#pass(a, weight, scale);
        return trace.numberOf(value) - trace.numberOf(a) * scale;
      }
      case 'product':
        return this.#passOnProduct(value, weight, a, b);
      case 'function':
        return this.#passOnFunction(value, weight, operation);
    }
  }

  #passOnFunction(value: number, weight: number, { function: name, limit }: Operation): number {
    const trace = this.#trace;
    const operands = [trace.a[value], trace.b[value], trace.c[value]];
    const at = operands.map((operand) => this.#bits(operand));
    let last = limited(evaluateReal(name!, at[0], at[1], at[2]), limit);
    const { high, low } = subtractDoubleDouble(this.#bits(value), last);
    for (let i = 0; i < operands.length; i++) {
      const operand = operands[i];
      if (operand <= decidedValue || this.#isExact(operand)) continue;
      const error = this.errorOf(operand);
      if (error === 0) continue;
      at[i] = this.#real.of(operand);
      const next = limited(evaluateReal(name!, at[0], at[1], at[2]), limit);
      const difference = subtractDoubleDouble(last, next);
      last = next;
      this.#pass(operand, weight, (difference.high + difference.low) / error);
    }
    const own = high + low;
    return Number.isFinite(own) ? own : 0;
  }

  /** Whether a value is a finite number without error, as most operands of products of inputs are: known without their bits. */
  #isExact(value: number): boolean {
    return this.#isGiven[this.#trace.operation[value]] && Number.isFinite(this.#real.high[value]);
  }

  #passOnProduct(value: number, weight: number, number: number, element: number): number {
    const trace = this.#trace;
    const { high, low } = this.#real;
    const { n, k, a, b, c, isNegated, scales } = trace.products[number];
    const [row, column] = [Math.floor(element / n), element % n];
    const sign = isNegated ? -1 : 1;
    if (this.#left.high.length !== k) [this.#left, this.#right] = [matrix(k), matrix(k)];
    const [left, right] = [this.#left, this.#right];
    for (let i = 0; i < k; i++) {
      const [p, q] = [a[row * k + i], b[column * k + i]];
      const factor = scales === null ? 1 : this.#factor(scales, row, column, i, k);
      const [isExactP, isExactQ] = [this.#isExact(p), this.#isExact(q)];
      const x = isExactP ? high[p] : trace.numberOf(p);
      const y = isExactQ ? high[q] : trace.numberOf(q);
      left.high[i] = x * factor;
      right.high[i] = y;
      if (!isExactP && x - high[p] - low[p] !== 0) this.#pass(p, weight, sign * factor * y);
      if (!isExactQ && y - high[q] - low[q] !== 0)
        this.#pass(q, weight, sign * factor * (high[p] + low[p]));
    }
    if (scales !== null) this.#passOnFactors(trace.products[number], element, weight);
    const [start, sum] = [this.#start, this.#sum];
    if (c !== null) start.high[0] = trace.numberOf(c[element]);
    realProduct({ m: 1, n: 1, k, isNegated }, left, right, c && start, sum);
    if (c !== null && this.errorOf(c[element]) !== 0) this.#pass(c[element], weight, 1);
    const exact = addDoubleDouble({ high: -sum.high[0], low: -sum.low[0] }, this.#bits(value));
    const own = exact.high + exact.low;
    return Number.isFinite(own) ? own : 0;
  }

  /** Passes a product's error on to the factors of its blocks, whose elements are real already. */
  #passOnFactors(product: ProductTrace, element: number, weight: number): void {
    const { n, k, a, b, isNegated, scales } = product;
    const { high, low } = this.#real;
    const real = (value: number) => high[value] + low[value];
    const [row, column] = [Math.floor(element / n), element % n];
    const perRow = k / scales!.block;
    for (let block = 0; block < perRow; block++) {
      let sum = 0;
      for (let i = block * scales!.block; i < (block + 1) * scales!.block; i++)
        sum += real(a[row * k + i]) * real(b[column * k + i]);
      const [p, q] = [scales!.a[row * perRow + block], scales!.b[column * perRow + block]];
      const slope = isNegated ? -sum : sum;
      if (!this.#isExact(p)) this.#pass(p, weight, slope * this.#trace.numberOf(q));
      if (!this.#isExact(q)) this.#pass(q, weight, slope * real(p));
    }
  }

  /** The product of the factors of an element of A and one of B. */
  #factor(
    { a, b, block }: { readonly a: Uint32Array; readonly b: Uint32Array; readonly block: number },
    row: number,
    column: number,
    i: number,
    k: number,
  ): number {
    const [perRow, at] = [k / block, Math.floor(i / block)];
    const trace = this.#trace;
    return trace.numberOf(a[row * perRow + at]) * trace.numberOf(b[column * perRow + at]);
  }
}
