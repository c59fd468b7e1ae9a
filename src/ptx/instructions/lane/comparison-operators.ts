/** Whether a comparison holds, of numbers or integers. */
export type Comparison = (a: number | bigint, b: number | bigint) => boolean;

const equality: Readonly<Record<string, Comparison>> = {
  eq: (a, b) => a === b,
  ne: (a, b) => a !== b,
};

const order: Readonly<Record<string, Comparison>> = {
  lt: (a, b) => a < b,
  le: (a, b) => a <= b,
  gt: (a, b) => a > b,
  ge: (a, b) => a >= b,
};

const isUnordered: Comparison = (a, b) => a !== a || b !== b;

const ordered: Readonly<Record<string, Comparison>> = {
  eq: equality.eq,
  ne: (a, b) => a < b || a > b,
  lt: order.lt,
  le: order.le,
  gt: order.gt,
  ge: order.ge,
};

/** The comparisons of bits. */
export const bitComparisons = equality;

/** The comparisons of signed integers. */
export const signedComparisons: Readonly<Record<string, Comparison>> = {
  eq: equality.eq,
  ne: equality.ne,
  lt: order.lt,
  le: order.le,
  gt: order.gt,
  ge: order.ge,
};

/** The comparisons of unsigned integers, which have alternative names. */
export const unsignedComparisons: Readonly<Record<string, Comparison>> = {
  eq: equality.eq,
  ne: equality.ne,
  lt: order.lt,
  le: order.le,
  gt: order.gt,
  ge: order.ge,
  lo: order.lt,
  ls: order.le,
  hi: order.gt,
  hs: order.ge,
};

/**
 * The comparisons of floating-point numbers: false where an operand is NaN, except for those that end
 * in `u`, and `nan`. Source: PTX ISA, "Floating Point Comparisons".
 */
export const floatComparisons: Readonly<Record<string, Comparison>> = {
  eq: ordered.eq,
  ne: ordered.ne,
  lt: ordered.lt,
  le: ordered.le,
  gt: ordered.gt,
  ge: ordered.ge,
  equ: (a, b) => isUnordered(a, b) || ordered.eq(a, b),
  neu: (a, b) => isUnordered(a, b) || ordered.ne(a, b),
  ltu: (a, b) => isUnordered(a, b) || ordered.lt(a, b),
  leu: (a, b) => isUnordered(a, b) || ordered.le(a, b),
  gtu: (a, b) => isUnordered(a, b) || ordered.gt(a, b),
  geu: (a, b) => isUnordered(a, b) || ordered.ge(a, b),
  num: (a, b) => !isUnordered(a, b),
  nan: isUnordered,
};

/** Combinations of the result of a comparison with a predicate; the empty modifier stands for no predicate. */
export const combinations: Readonly<Record<string, (result: number, predicate: number) => number>> =
  {
    '': (result) => result,
    '.and': (result, predicate) => result & predicate,
    '.or': (result, predicate) => result | predicate,
    '.xor': (result, predicate) => result ^ predicate,
  };
