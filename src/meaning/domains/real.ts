import { doubleDouble, type DoubleDouble } from '../../arith/index.js';
import { evaluateReal, limited } from '../rules/index.js';
import { lostValue, type ProductTrace, type Trace } from '../trace/index.js';
import type { Idioms } from './idioms.js';
import { realProduct, type RealMatrix } from './real-product.js';

/** Value of the splitting constant 2^27 + 1, as for Dekker's product. */
const splitter = 134217729;

/** Room for a matrix, used again for the next one. */
class Scratch {
  #high = new Float64Array(0);
  #low = new Float64Array(0);

  /** A matrix of so many numbers, whatever they were. */
  of(length: number): RealMatrix {
    if (this.#high.length < length) {
      this.#high = new Float64Array(length);
      this.#low = new Float64Array(length);
    }
    return { high: this.#high.subarray(0, length), low: this.#low.subarray(0, length) };
  }
}

/**
 * The real values of a trace: what each value would be if nothing were rounded from the inputs on, in double-double arithmetic:
 * each operation adds a relative error of some 2^−100. Values that are lost are NaN.
 */
export class RealDomain {
  high = new Float64Array(0);
  low = new Float64Array(0);
  readonly #trace: Trace;
  readonly #idioms: Idioms | null;
  /** For A, B and C of a product. */
  readonly #scratch = [new Scratch(), new Scratch(), new Scratch()] as const;
  #done = 0;

  /** @param idioms taken for the functions that they stand for; null keeps them as they are computed */
  constructor(trace: Trace, idioms: Idioms | null = null) {
    this.#trace = trace;
    this.#idioms = idioms;
  }

  /** The real value of a value. */
  of(value: number): DoubleDouble {
    return { high: this.high[value], low: this.low[value] };
  }

  #put(value: number, { high, low }: DoubleDouble): void {
    this.high[value] = high;
    this.low[value] = low;
  }

  /** Takes the values that have been made since the last call. */
  extend(): void {
    const trace = this.#trace;
    const { count, operations } = trace;
    if (this.high.length < count) {
      const [high, low] = [this.high, this.low];
      this.high = new Float64Array(trace.operation.length);
      this.low = new Float64Array(trace.operation.length);
      this.high.set(high);
      this.low.set(low);
    }
    for (let value = this.#done; value < count; value++) {
      const { origin, function: name, limit } = operations[trace.operation[value]];
      if (this.#isTaken(value)) continue;
      const [a, b, c] = [trace.a[value], trace.b[value], trace.c[value]];
      switch (origin) {
        case 'input':
        case 'constant':
          this.high[value] = trace.numberOf(value);
          this.low[value] = 0;
          break;
        case 'function':
          if (limit !== null || !this.#isQuick(value, name, a, b, c))
            this.#put(
              value,
              limited(evaluateReal(name!, this.of(a), this.of(b), this.of(c)), limit),
            );
          break;
        case 'same':
          this.#put(value, this.of(a));
          break;
        case 'choice':
          this.#put(value, this.of(c));
          break;
        case 'scale':
          // A power of two is exact, also where the product of splittings would overflow.
          this.high[value] = this.high[a] * 2 ** (c | 0);
          this.low[value] = this.low[a] * 2 ** (c | 0);
          break;
        case 'product': {
          const product = trace.products[a];
          this.#multiply(product);
          value = product.first + product.m * product.n - 1;
          break;
        }
        case 'none':
          this.#put(value, doubleDouble(NaN));
          break;
      }
    }
    this.#done = count;
    this.high[lostValue] = NaN;
  }

  /** Takes a value for a function, where it is an idiom; returns whether it was one. */
  #isTaken(value: number): boolean {
    if (this.#idioms?.has(this.#trace.operation[value]) !== true) return false;
    const taken = this.#idioms.take(value, (operand) => this.of(operand));
    if (taken !== null) this.#put(value, taken);
    return taken !== null;
  }

  /** Sums, products and fused ones without objects; returns whether it was one, of finite numbers. */

  #isQuick(value: number, name: string | null, a: number, b: number, c: number): boolean {
    const { high, low } = this;
    let [p, e] = [high[a], low[a]];
    if (name === 'fma' || name === 'multiply') {
      const [x, y] = [high[a], high[b]];
      p = x * y;
      if (p === 0) e = 0;
      else {
        let t = splitter * x;
        const xh = t - (t - x);
        t = splitter * y;
        const yh = t - (t - y);
        const [xl, yl] = [x - xh, y - yh];
        const error = xh * yh - p + xh * yl + xl * yh + xl * yl + (x * low[b] + low[a] * y);
        const sum = p + error;
        e = error - (sum - p);
        p = sum;
      }
      if (name === 'multiply') {
        if (!Number.isFinite(p) || !Number.isFinite(e)) return false;
        high[value] = p;
        low[value] = e;
        return true;
      }
    } else if (name !== 'add' && name !== 'subtract') return false;
    const sign = name === 'subtract' ? -1 : 1;
    const added = name === 'fma' ? c : b;
    const [q, f] = [sign * high[added], sign * low[added]];
    const s = p + q;
    if (!Number.isFinite(s) || !Number.isFinite(e)) return false;
    let t = s - p;
    let error = p - (s - t) + (q - t);
    const u = e + f;
    t = u - e;
    const rest = e - (u - t) + (f - t);
    error += u;
    const v = s + error;
    const w = error - (v - s) + rest;
    high[value] = v + w;
    low[value] = w - (high[value] - v);
    return true;
  }

  /** The real values of values, times factors that are given. */
  #gather(
    values: Uint32Array,
    into: Scratch,
    factorOf: ((i: number) => number) | null,
  ): RealMatrix {
    const { high, low } = this;
    const matrix = into.of(values.length);
    for (let i = 0; i < values.length; i++) {
      matrix.high[i] = high[values[i]];
      matrix.low[i] = low[values[i]];
    }
    if (factorOf !== null)
      for (let i = 0; i < values.length; i++) {
        const factor = factorOf(i);
        matrix.high[i] *= factor;
        matrix.low[i] *= factor;
      }
    return matrix;
  }

  #multiply({ m, n, k, a, b, c, isNegated, scales, first }: ProductTrace): void {
    const { high, low } = this;
    const [left, right, start] = this.#scratch;
    const factorOf = (factors: Uint32Array | undefined) => {
      if (factors === undefined || scales === null) return null;
      const perRow = k / scales.block;
      // Factors have few bits, and are exact.
      return (i: number) =>
        high[factors[Math.floor(i / k) * perRow + Math.floor((i % k) / scales.block)]];
    };
    realProduct(
      { m, n, k, isNegated },
      this.#gather(a, left, factorOf(scales?.a)),
      this.#gather(b, right, factorOf(scales?.b)),
      c && this.#gather(c, start, null),
      { high: high.subarray(first, first + m * n), low: low.subarray(first, first + m * n) },
    );
  }
}
