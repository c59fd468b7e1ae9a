import type { Expression } from './function-body.js';
import { i8x16 } from './integer-vectors.js';

const evenWords = [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27];
const oddWords = evenWords.map((byte) => byte + 4);

/** The low words of the four 64-bit lanes of {a, b}. */
export function lowWords(a: Expression, b: Expression): Expression {
  return i8x16.shuffle(a, b, evenWords);
}

/** The high words of the four 64-bit lanes of {a, b}. */
export function highWords(a: Expression, b: Expression): Expression {
  return i8x16.shuffle(a, b, oddWords);
}

const halves = { low: [0, 1, 2, 3, 4, 5, 6, 7], high: [8, 9, 10, 11, 12, 13, 14, 15] } as const;

/** The high 64 bits, then the low ones. */
export function swapHalves(a: Expression): Expression {
  return i8x16.shuffle(a, a, [...halves.high, ...halves.low]);
}

/** The low 64 bits of a, then those of b. */
export function joinLow(a: Expression, b: Expression): Expression {
  return i8x16.shuffle(a, b, [...halves.low, ...halves.low.map((byte) => byte + 16)]);
}

/** The high 64 bits of a, then those of b. */
export function joinHigh(a: Expression, b: Expression): Expression {
  return i8x16.shuffle(a, b, [...halves.high, ...halves.high.map((byte) => byte + 16)]);
}

/** The alternating words of a and b: those of the low halves. */
export function interleaveLow(a: Expression, b: Expression): Expression {
  return i8x16.shuffle(a, b, [0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23]);
}

/** The alternating words of a and b: those of the high halves. */
export function interleaveHigh(a: Expression, b: Expression): Expression {
  return i8x16.shuffle(a, b, [8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31]);
}
