import {
  addDoubleDouble,
  doubleDouble,
  type DoubleDouble,
  subtractDoubleDouble,
} from '../../arith/index.js';
import { evaluateReal, limited } from '../rules/index.js';
import { decidedValue, type Operation, type Trace } from '../trace/index.js';
import type { RealDomain } from './real.js';
import { realProduct } from './real-product.js';

/** The error of one value and its parts, absolute. */
export interface RoundingShares {
  /** The value's bits less its real value. */
  readonly error: number;
  /** The part of each operation of the trace that rounded something on the way, by its number. */
  readonly parts: ReadonlyMap<number, number>;
}

/** Numbers in descending order, each once: a heap of those that wait. */
class Descending {
  readonly #heap: number[] = [];

  push(value: number): void {
    const heap = this.#heap;
    let at = heap.push(value) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (heap[parent] >= value) break;
      heap[at] = heap[parent];
      at = parent;
    }
    heap[at] = value;
  }

  pop(): number | null {
    const heap = this.#heap;
    if (heap.length === 0) return null;
    const top = heap[0];
    const last = heap.pop()!;
    const { length } = heap;
    if (length === 0) return top;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= length) break;
      if (child + 1 < length && heap[child + 1] > heap[child]) child++;
      if (heap[child] <= last) break;
      heap[at] = heap[child];
      at = child;
    }
    heap[at] = last;
    return top;
  }
}

/** Where a value's error goes: its own rounding, and how much of each operand's error. */
interface Passing {
  readonly own: number;
  readonly operands: readonly (readonly [value: number, slope: number])[];
}

/**
 * Attributes the error of values, bits less real value, to the operations that rounded on the way. The error of a result is its own
 * rounding, bits − f(operands' bits), and for each operand the difference that its error makes to f while those before it are real and
 * those behind it bits: these differences telescope, so that the parts sum to the error up to the accuracy of double-doubles.
 */
export class RoundingDomain {
  readonly #trace: Trace;
  readonly #real: RealDomain;
  readonly #adjoints = new Map<number, number>();

  constructor(trace: Trace, real: RealDomain) {
    this.#trace = trace;
    this.#real = real;
  }

  /** Bits less real value. */
  errorOf(value: number): number {
    const { high, low } = this.#real.of(value);
    return this.#trace.numberOf(value) - high - low;
  }

  /** The parts of a value's error; null where its bits or its real value are no finite number. */
  sharesOf(value: number): RoundingShares | null {
    const error = this.errorOf(value);
    if (!Number.isFinite(error)) return null;
    const parts = new Map<number, number>();
    const waiting = new Descending();
    const adjoints = this.#adjoints;
    adjoints.clear();
    adjoints.set(value, 1);
    waiting.push(value);
    for (let next; (next = waiting.pop()) !== null;) {
      const weight = adjoints.get(next) ?? 0;
      const { own, operands } = this.#passingOf(next);
      const number = this.#trace.operation[next];
      if (own !== 0 && weight !== 0) parts.set(number, (parts.get(number) ?? 0) + weight * own);
      for (const [operand, slope] of operands) {
        if (operand <= decidedValue || slope === 0) continue;
        const known = adjoints.get(operand);
        if (known === undefined) waiting.push(operand);
        adjoints.set(operand, (known ?? 0) + weight * slope);
      }
    }
    return { error, parts };
  }

  #bits(value: number): DoubleDouble {
    return doubleDouble(this.#trace.numberOf(value));
  }

  #passingOf(value: number): Passing {
    const trace = this.#trace;
    const operation = trace.operationOf(value);
    const [a, b, c] = [trace.a[value], trace.b[value], trace.c[value]];
    switch (operation.origin) {
      case 'input':
      case 'constant':
      case 'none':
        return { own: 0, operands: [] };
      case 'choice':
        return { own: 0, operands: [[c, 1]] };
      case 'same':
        return { own: trace.numberOf(value) - trace.numberOf(a), operands: [[a, 1]] };
      case 'scale': {
        const scale = 2 ** (c | 0);
        return { own: trace.numberOf(value) - trace.numberOf(a) * scale, operands: [[a, scale]] };
      }
      case 'product':
        return this.#passingOfProduct(value, a, b);
      case 'function':
        return this.#passingOfFunction(value, operation, [a, b, c]);
    }
  }

  #passingOfFunction(
    value: number,
    { function: name, limit }: Operation,
    operands: readonly [number, number, number],
  ): Passing {
    const at = operands.map((operand) => this.#bits(operand));
    const f = (): DoubleDouble => limited(evaluateReal(name!, at[0], at[1], at[2]), limit);
    let last = f();
    const { high, low } = subtractDoubleDouble(this.#bits(value), last);
    const own = high + low;
    const passed = operands.flatMap((operand, i): (readonly [number, number])[] => {
      const real = this.#real.of(operand);
      const error = at[i].high - real.high - real.low;
      if (operand <= decidedValue || error === 0) return [];
      at[i] = real;
      const next = f();
      const difference = subtractDoubleDouble(last, next);
      last = next;
      return [[operand, (difference.high + difference.low) / error]];
    });
    return { own: Number.isFinite(own) ? own : 0, operands: passed };
  }

  #passingOfProduct(value: number, number: number, element: number): Passing {
    const trace = this.#trace;
    const { n, k, a, b, c, isNegated, scales } = trace.products[number];
    const [row, column] = [Math.floor(element / n), element % n];
    const sign = isNegated ? -1 : 1;
    const operands: (readonly [number, number])[] = [];
    const matrix = () => ({ high: new Float64Array(k), low: new Float64Array(k) });
    const [left, right] = [matrix(), matrix()];
    for (let i = 0; i < k; i++) {
      const [p, q] = [a[row * k + i], b[column * k + i]];
      const factor = scales === null ? 1 : this.#factor(scales, row, column, i, k);
      left.high[i] = trace.numberOf(p) * factor;
      right.high[i] = trace.numberOf(q);
      if (this.errorOf(p) !== 0) operands.push([p, sign * factor * right.high[i]]);
      const real = this.#real.of(p);
      if (this.errorOf(q) !== 0) operands.push([q, sign * factor * (real.high + real.low)]);
    }
    const start =
      c === null
        ? null
        : { high: Float64Array.of(trace.numberOf(c[element])), low: new Float64Array(1) };
    const sum = { high: new Float64Array(1), low: new Float64Array(1) };
    realProduct({ m: 1, n: 1, k, isNegated }, left, right, start, sum);
    if (c !== null && this.errorOf(c[element]) !== 0) operands.push([c[element], 1]);
    const exact = addDoubleDouble({ high: -sum.high[0], low: -sum.low[0] }, this.#bits(value));
    const own = exact.high + exact.low;
    return { own: Number.isFinite(own) ? own : 0, operands };
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
