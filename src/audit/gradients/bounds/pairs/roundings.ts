import type { Blocks } from './blocks.js';

/** Numbers that are rounded to the format of an operand, and their roundings, in the order of the loops. */
export const roundingBlocks = [
  ...(['numbers', 'errors', 'worst', 'known', 'variance'] as const),
  ...(['byFirst', 'bySecond', 'byThird'] as const),
] as const;

/**
 * Roundings of numbers, place by place: the numbers, and how far they may be off before; the largest error; the rounding itself
 * where it is certain, or is so for one of several factors among subnormals, else 0; its variance where it is not certain; and
 * `known` by each of the other factors.
 *
 * Numbers are within their errors of x: Theorem 5 of docs/theory/bounds.md. Where a factor may multiply them before, their
 * significands are not known, and the worst of its units counts.
 */
export type Roundings = Blocks<(typeof roundingBlocks)[number]>;
