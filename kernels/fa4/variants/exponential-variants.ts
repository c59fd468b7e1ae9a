import {
  exp2Coefficients,
  exp2OfReduced,
  exp2Polynomial,
  reduceRange,
  type RangeReduction,
} from '../../online-softmax/exp2-polynomial.js';
import { exp2Hardware } from '../../online-softmax/units.js';
import { polynomialColumns } from '../exp2-tuning.js';
import type { ForwardVariation, VariationContext } from '../forward.js';
import { variant, type KernelVariant } from './variant.js';

/** Replaces the function in the columns that the polynomial computes. */
function inPolynomialColumns(
  create: (context: VariationContext) => (x: number) => number,
): ForwardVariation {
  return {
    steps: (context) => {
      const isPolynomial = polynomialColumns(context.configuration);
      const changed = create(context);
      return {
        exponential: (x, column, block) =>
          isPolynomial[column] ? changed(x) : context.kernel.exponential(x, column, block),
      };
    },
  };
}

/** The polynomial's exponential from a given range reduction. */
function withReduction(reduce: (x: number) => RangeReduction): ForwardVariation {
  return inPolynomialColumns(({ configuration }) => {
    const coefficients = exp2Coefficients[configuration.exp2.degree];
    return (x) => exp2OfReduced(reduce(x), coefficients);
  });
}

/** A coefficient whose third significant digit is one too large, rounded to fp32. */
function wrongDigit(coefficient: number): number {
  return Math.fround(coefficient + 10 ** (Math.floor(Math.log10(coefficient)) - 2));
}

function wrongCoefficient(index: number): KernelVariant {
  return variant(
    {
      id: `exp2-coefficient-c${index}`,
      title: `A wrong digit in the polynomial's coefficient c${index}`,
      mechanism: `The third significant digit of c${index} is one too large, so that 2^x is off by that times f^${index}, f the fraction of x.`,
      visibleWhen: 'keys in columns that the polynomial computes',
      objection: ({ exp2 }) =>
        index > exp2.degree
          ? `the polynomial of degree ${exp2.degree} has no c${index}; give exp2.degree ${index} or more`
          : null,
    },
    inPolynomialColumns(({ configuration }) => {
      const coefficients = exp2Coefficients[configuration.exp2.degree].map((c, k) =>
        k === index ? wrongDigit(c) : c,
      );
      return (x) => exp2OfReduced(reduceRange(x), coefficients);
    }),
  );
}

const exponentUnit = 2 ** 23;

/** The integer part by truncation, less one for negative numbers. */
function truncatedReduction(x: number): RangeReduction {
  const reduced = reduceRange(x);
  const isNegativeInteger = x < 0 && x > -127 && reduced.fraction === 0;
  return isNegativeInteger
    ? { ...reduced, integerBits: reduced.integerBits - exponentUnit }
    : reduced;
}

/** Bugs of the exponential. */
export const exponentialVariants: readonly KernelVariant[] = [
  variant(
    {
      id: 'mask-dependent-exp2',
      title: 'Masked blocks use the hardware exponential only',
      source: 'Dao-AILab/flash-attention #2595, #2596',
      mechanism:
        'The split of columns between polynomial and hardware is applied in blocks without a mask only; the first block visited always has one. Which blocks are masked depends on the tiling.',
      visibleWhen: 'the same row computed in two tilings, as in prefill and decode: bits differ',
    },
    {
      steps: ({ kernel }) => ({
        exponential: (x, column, block) =>
          block.isMasked || block.index === 0
            ? exp2Hardware(x)
            : kernel.exponential(x, column, block),
      }),
    },
  ),
  variant(
    {
      id: 'exp2-bias-in-lse',
      title: 'The polynomial computes every column, that of the maximum too',
      source: 'SandAI-org/MagiAttention #342',
      mechanism:
        'At the maximum x is 0 or, through the rounding of the scale, a tiny negative number, for which the polynomial of degree 3 is 8.5e-5 short; with few keys that is the error of the LSE.',
      visibleWhen: 'rows with few keys, as the first rows under a causal mask; tell by the LSE',
    },
    {
      steps: ({ configuration }) => ({
        exponential: (x) => exp2Polynomial(x, configuration.exp2.degree),
      }),
    },
  ),
  ...[0, 1, 2, 3].map(wrongCoefficient),
  variant(
    {
      id: 'exp2-integer-shifted',
      title: 'The exponent is one too low at negative integers',
      mechanism:
        'The integer part is truncated and lowered by one for negative numbers, which is the floor but for exact integers: there 2^x comes out halved.',
      visibleWhen:
        'scores that differ by whole powers of two, in columns that the polynomial computes',
    },
    withReduction(truncatedReduction),
  ),
  variant(
    {
      id: 'exp2-nearest-reduction',
      title: 'The range reduction rounds to nearest',
      mechanism:
        'The fraction lies in [−1/2, 1/2] in place of [0, 1], for which the polynomial is not made: 2^x is up to 1 % off where the fraction of x is above 1/2.',
      visibleWhen: 'keys in columns that the polynomial computes',
    },
    withReduction((x) => reduceRange(x, { rounding: 'nearest-even', flushToZero: true })),
  ),
];
