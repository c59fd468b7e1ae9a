import type { RealFunction } from '../rules/index.js';
import { noValue, type Trace } from '../trace/index.js';
import { isInfinite, isZero, type Influences } from './influences.js';
import { anySet, emptySet, LabelSets } from './label-sets.js';
import { ProductInfluence } from './product-influence.js';

/** The label of an element of an input, by the input's number: an integer from 0 to 2^31 − 1, as the row of a key. */
export type LabelOf = (input: number, element: number) => number;

type Pair<T> = readonly [T, T];

/**
 * Which inputs reach each value of a trace, by the labels of the inputs' elements: with weight, or in the structure only.
 *
 * What is claimed of a value holds on the path that the run took, for every decision as it fell. As long as the inputs with the
 * labels that reach it with weight keep their bits, the value is the same number (zeros of both signs are one), whatever the
 * inputs with other labels are. Those that reach it in the structure only are the exception in one case: where with them a value
 * of the trace, an input or a result, is a number of another kind than in this run, of finite ones, either infinity and NaN.
 *
 * An operand swallows the other one, which then reaches the result in the structure only, where
 * - it is a factor, or a dividend, whose bits are those of a zero of either sign: a constant, a weight that underflowed, or an
 *   input that happens to be zero;
 * - it is an infinity that is added to a finite number, or by which one is divided.
 *
 * What reaches the operand that swallows stays. Where both swallow, the one that nothing reaches with weight does, else the first.
 * Every operand of a choice counts, whichever won. A value that is lost or has decided something may be reached by any label.
 * Inputs that were read only to decide something are not followed: to compare, to round to an integer, to address.
 */
export class InfluenceDomain implements Influences {
  readonly sets = new LabelSets();
  withWeight = new Uint32Array(0);
  inStructure = new Uint32Array(0);
  readonly #trace: Trace;
  readonly #labelOf: LabelOf;
  readonly #products: ProductInfluence;
  #done = 0;

  constructor(trace: Trace, labelOf: LabelOf) {
    this.#trace = trace;
    this.#labelOf = labelOf;
    this.#products = new ProductInfluence(trace, this);
  }

  /** The set of labels that reach a value in the structure only. */
  structureOnly(value: number): number {
    return this.sets.difference(this.inStructure[value], this.withWeight[value]);
  }

  #grow(): void {
    const { count } = this.#trace;
    const { withWeight, inStructure } = this;
    if (withWeight.length >= count) return;
    // As long as needed at first, since most traces are taken once.
    const length = Math.max(count, Math.ceil(1.25 * withWeight.length));
    this.withWeight = new Uint32Array(length);
    this.inStructure = new Uint32Array(length);
    this.withWeight.set(withWeight);
    this.inStructure.set(inStructure);
  }

  /** Takes the values that have been made since the last call. */
  extend(): void {
    const trace = this.#trace;
    const { count, operations } = trace;
    this.#grow();
    for (let value = this.#done; value < count; value++) {
      const { origin, function: name } = operations[trace.operation[value]];
      const a = trace.a[value];
      switch (origin) {
        case 'input':
          this.withWeight[value] = this.sets.single(this.#labelOf(a, trace.b[value]));
          break;
        case 'constant':
          break;
        case 'same':
        case 'scale':
          this.#copy(value, a);
          break;
        case 'choice':
          this.#join(value, a, trace.b[value]);
          break;
        case 'function':
          this.#function(value, name);
          break;
        case 'product': {
          const product = trace.products[a];
          this.#products.take(product);
          value = product.first + product.m * product.n - 1;
          break;
        }
        case 'none':
          this.withWeight[value] = value === noValue ? emptySet : anySet;
          break;
      }
    }
    this.#done = count;
  }

  #copy(value: number, a: number): void {
    this.withWeight[value] = this.withWeight[a];
    this.inStructure[value] = this.inStructure[a];
  }

  #join(value: number, a: number, b: number): void {
    const { sets, withWeight, inStructure } = this;
    withWeight[value] = sets.union(withWeight[a], withWeight[b]);
    inStructure[value] = sets.union(inStructure[a], inStructure[b]);
  }

  /** A value that one operand decides, whatever finite number the other is. */
  #swallow(value: number, a: number, b: number): void {
    const { sets, withWeight, inStructure } = this;
    const structure = sets.union(inStructure[a], inStructure[b]);
    inStructure[value] = sets.union(structure, withWeight[b]);
    withWeight[value] = withWeight[a];
  }

  /** A value of two operands, each of which may swallow the other. */
  #join2(value: number, [a, b]: Pair<number>, [isFirst, isSecond]: Pair<boolean>): void {
    if (isSecond && (!isFirst || this.withWeight[b] === emptySet)) this.#swallow(value, b, a);
    else if (isFirst) this.#swallow(value, a, b);
    else this.#join(value, a, b);
  }

  #function(value: number, name: RealFunction | null): void {
    const trace = this.#trace;
    const [a, b, c] = [trace.a[value], trace.b[value], trace.c[value]];
    switch (name) {
      case 'add':
      case 'subtract':
        this.#join2(value, [a, b], [isInfinite(trace, a), isInfinite(trace, b)]);
        return;
      case 'multiply':
        this.#join2(value, [a, b], [isZero(trace, a), isZero(trace, b)]);
        return;
      case 'divide':
        this.#join2(value, [a, b], [isZero(trace, a), isInfinite(trace, b)]);
        return;
      case 'fma':
        this.#join2(value, [a, b], [isZero(trace, a), isZero(trace, b)]);
        // The product stands where its sum with the third operand will.
        this.#join2(
          value,
          [value, c],
          [isInfinite(trace, a) || isInfinite(trace, b), isInfinite(trace, c)],
        );
        return;
      default:
        this.#join(value, a, b);
        this.#join(value, value, c);
        // The sign of a zero may come from what reaches it in the structure.
        if (name === 'copysign' && isZero(trace, b))
          this.withWeight[value] = this.sets.union(this.withWeight[value], this.inStructure[b]);
    }
  }
}
