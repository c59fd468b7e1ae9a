import type { Operation, Trace } from '../trace/index.js';

/** What is known of a value for all inputs of the premise, a bit each. */
export const facts = {
  /** Its bits are those of this run. */
  known: 1,
  /** It is no −0. */
  notMinusZero: 2,
  /** Its sign bit is 0: a positive number or +0. */
  notNegative: 4,
} as const;

/** What an operation's rules are those of; null where only operands that are all known say something. */
type Kind = 'add' | 'subtract' | 'multiply' | 'fma' | 'max' | 'min' | 'power' | 'magnitude' | null;

/** Rounded to nearest or towards zero, nothing flushed or cut: an exact zero of a sum is +0, unless both terms are −0. */
const plainArithmetic = /^(?:add|sub|mul|fma)(?:\.r[nz])?\.(?:f16|bf16|f32|f64)$/;
const plainExtremum = /^(max|min)(?:\.NaN)?\.(?:f16|bf16|f32|f64)$/;

function kindOf({ origin, function: name, name: instruction }: Operation): Kind {
  if (origin === 'choice')
    return (plainExtremum.exec(instruction)?.[1] as 'max' | 'min' | undefined) ?? null;
  if (origin !== 'function') return null;
  if (name === 'exp2') return 'power';
  if (name === 'absolute') return 'magnitude';
  if (!plainArithmetic.test(instruction)) return null;
  return name as 'add' | 'subtract' | 'multiply' | 'fma';
}

/** A rule's result: the bits are those of this run, or those of an operand, by its number; null where nothing is known. */
export type Identity = number | 'known' | null;

/**
 * Identities that keep the bits. Each holds for all inputs on which the run decides alike and on which every value that is a finite
 * number in this run is one: the _premise_. What is known of a value is a byte of `facts`; operands come before what is made of them.
 */
export class Identities {
  /** The facts of each value. */
  of = new Uint8Array(0);
  readonly #trace: Trace;
  readonly #isSame: (one: number, other: number) => boolean;
  readonly #kinds: Kind[] = [];

  /** @param isSame whether two values have equal expressions */
  constructor(trace: Trace, isSame: (one: number, other: number) => boolean) {
    this.#trace = trace;
    this.#isSame = isSame;
  }

  /** Makes room for the values of the trace. */
  grow(): void {
    const grown = new Uint8Array(this.#trace.operation.length);
    grown.set(this.of);
    this.of = grown;
  }

  /** Notes that a value has its bits for all inputs. */
  know(value: number): 'known' {
    const number = this.#trace.numberOf(value);
    const isNegative = number < 0 || Object.is(number, -0);
    this.of[value] =
      facts.known |
      (Object.is(number, -0) ? 0 : facts.notMinusZero) |
      (isNegative || Number.isNaN(number) ? 0 : facts.notNegative);
    return 'known';
  }

  isKnown(value: number): boolean {
    return (this.of[value] & facts.known) !== 0;
  }

  /** Whether a value is a zero, of either sign, for all inputs. */
  isZero(value: number): boolean {
    return this.isKnown(value) && this.#trace.numberOf(value) === 0;
  }

  /** Whether a value is a finite number for all inputs. */
  isFinite(value: number): boolean {
    return Number.isFinite(this.#trace.numberOf(value));
  }

  isNeverMinusZero(value: number): boolean {
    return (this.of[value] & facts.notMinusZero) !== 0;
  }

  /**
   * The identity of a value that is no product of matrices, and notes its facts.
   *
   * @param number that of its operation
   */
  find(value: number, number: number): Identity {
    const { a: left, b: right, c: last, operations } = this.#trace;
    const operation = operations[number];
    const [a, b, c] = [left[value], right[value], last[value]];
    const { origin } = operation;
    if (origin === 'input') return null;
    const areKnown =
      origin === 'constant' ||
      (this.isKnown(a) &&
        ((origin !== 'function' && origin !== 'choice') || b === 0 || this.isKnown(b)) &&
        (origin !== 'function' || c === 0 || this.isKnown(c)));
    if (areKnown) return this.know(value);
    let kind = this.#kinds[number];
    if (kind === undefined) this.#kinds[number] = kind = kindOf(operation);
    if (kind === null) return null;
    const identity = this.#byKind(kind, a, b, c);
    if (identity === null) this.of[value] = this.#factsOf(kind, a, b);
    else if (identity === 'known' || this.isKnown(identity)) return this.know(value);
    else this.of[value] = this.of[identity];
    return identity;
  }

  #byKind(kind: Kind, a: number, b: number, c: number): Identity {
    switch (kind) {
      case 'add':
        return this.#ofSum(a, b, 1) ?? this.#ofSum(b, a, 1);
      case 'subtract':
        // In the roundings of `plainArithmetic` x − x is +0.
        if (this.#isSame(a, b) && this.isFinite(a)) return 'known';
        return this.#ofSum(a, b, -1) ?? (this.isKnown(a) ? this.#ofInfinity(a, b) : null);
      case 'multiply':
        return this.#ofProduct(a, b) ?? this.#ofProduct(b, a);
      case 'fma':
        return this.#ofFused(a, b, c);
      case 'max':
        return this.#ofExtremum(a, b, -Infinity);
      case 'min':
        return this.#ofExtremum(a, b, Infinity);
      default:
        return null;
    }
  }

  /** ±∞ + x for a finite x. */
  #ofInfinity(infinity: number, x: number): Identity {
    return Math.abs(this.#trace.numberOf(infinity)) === Infinity && this.isFinite(x)
      ? 'known'
      : null;
  }

  /** x + sign·k for a known k: an infinity, or a zero. x + −0 is x; x + +0 is x unless x is −0. */
  #ofSum(x: number, k: number, sign: 1 | -1): Identity {
    if (!this.isKnown(k)) return null;
    const number = sign * this.#trace.numberOf(k);
    if (number !== 0) return this.#ofInfinity(k, x);
    const isKept = Object.is(number, -0) || this.isNeverMinusZero(x);
    return isKept && this.isFinite(x) ? x : null;
  }

  /** x·1; x·0 where the sign of x is known. */
  #ofProduct(x: number, k: number): Identity {
    if (!this.isKnown(k)) return null;
    const number = this.#trace.numberOf(k);
    if (number === 1) return this.isFinite(x) ? x : null;
    const hasSign = (this.of[x] & facts.notNegative) !== 0;
    return number === 0 && hasSign && this.isFinite(x) ? 'known' : null;
  }

  /** a·b + c with an infinite term, or with a product that is zero. */
  #ofFused(a: number, b: number, c: number): Identity {
    const [isLeft, isRight] = [this.isKnown(a), this.isKnown(b)];
    if (this.isKnown(c) && Math.abs(this.#trace.numberOf(c)) === Infinity)
      return this.isFinite(a) && this.isFinite(b) ? 'known' : null;
    if (!isLeft && !isRight) return null;
    const [x, y] = [this.#trace.numberOf(a), this.#trace.numberOf(b)];
    if (!this.isFinite(c)) return null;
    if (
      isLeft &&
      isRight &&
      Math.abs(x * y) === Infinity &&
      !(Number.isFinite(x) && Number.isFinite(y))
    )
      return 'known';
    const isZero = (isLeft && x === 0) || (isRight && y === 0);
    if (!isZero || !this.isFinite(a) || !this.isFinite(b)) return null;
    // The product is a zero of a sign that x decides; ±0 + c is c unless c is −0.
    return this.isNeverMinusZero(c) ? c : null;
  }

  /** max and min of a value and the number that loses against all, and of a value and itself. */
  #ofExtremum(a: number, b: number, loser: number): Identity {
    const loses = (k: number) => this.isKnown(k) && this.#trace.numberOf(k) === loser;
    if (loses(b) || this.#isSame(a, b)) return this.isFinite(a) ? a : null;
    return loses(a) && this.isFinite(b) ? b : null;
  }

  #factsOf(kind: Kind, a: number, b: number): number {
    const [x, y] = [this.of[a], this.of[b]];
    const positive = facts.notNegative | facts.notMinusZero;
    switch (kind) {
      case 'power':
      case 'magnitude':
        return positive;
      case 'add':
        // Sums of two numbers of a format never underflow: they are zero only where they are exactly zero.
        return (x & y & facts.notNegative) | ((x | y) & facts.notMinusZero);
      case 'multiply':
        return (x & y & facts.notNegative) === 0 ? 0 : positive;
      case 'max':
      case 'min':
        return x & y & positive;
      default:
        return 0;
    }
  }
}
