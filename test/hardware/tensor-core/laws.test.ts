import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decode, formats } from '../../../src/formats/index.js';
import {
  decodeOperand,
  fusedDotProduct,
  operandFormats,
  tensorCoreArithmetic,
  tensorCoreProduct,
} from '../../../src/hardware/index.js';
import type { Operand, TensorCoreArithmetic } from '../../../src/hardware/index.js';
import { scaled } from '../../setup/effort.js';

interface Operands {
  readonly a: readonly number[];
  readonly b: readonly number[];
  readonly c: number;
}

/** One row for each arithmetic: other architectures and evidence do not change it. */
const arithmetics = [
  ...new Map(
    tensorCoreArithmetic.map((row) => {
      const { operands, accumulator, productsPerSum, alignedFractionBits } = row;
      const name = `${operands[0]} ${accumulator} ${productsPerSum} products F = ${alignedFractionBits}`;
      return [name, { name, row }] as const;
    }),
  ).values(),
];

/** Patterns of a format whose exponent fields lie in the middle half: no overflow, no underflow. */
function moderate({ storageBits, exponentBits, precision, paddingBits }: Fields) {
  const quarter = 2 ** (exponentBits - 2);
  return fc
    .record({
      negative: fc.boolean(),
      field: fc.integer({ min: quarter, max: 3 * quarter }),
      fraction: fc.nat(2 ** (precision - 1) - 1),
    })
    .map(({ negative, field, fraction }) => {
      const magnitude = (field * 2 ** (precision - 1) + fraction) * 2 ** paddingBits;
      return magnitude + (negative ? 2 ** (storageBits - 1) : 0);
    });
}

type Fields = Pick<
  (typeof operandFormats)['bf16'],
  'storageBits' | 'exponentBits' | 'precision' | 'paddingBits'
>;

function anything({ storageBits }: Fields) {
  return fc.nat(2 ** storageBits - 1);
}

function operandsOf(row: TensorCoreArithmetic, patterns: (format: Fields) => fc.Arbitrary<number>) {
  const operand = patterns(operandFormats[row.operands[0]]);
  const { productsPerSum: length } = row;
  const many = fc.array(operand, { minLength: length, maxLength: length });
  return fc.record({ a: many, b: many, c: patterns(formats[row.accumulator]) });
}

function sum(row: TensorCoreArithmetic, { a, b, c }: Operands): number {
  const decoded = (patterns: readonly number[]): Operand[] =>
    patterns.map((bits) => decodeOperand(operandFormats[row.operands[0]], bits));
  return fusedDotProduct(row, decoded(a), decoded(b), c);
}

function signBit({ storageBits }: Fields): number {
  return 2 ** (storageBits - 1);
}

function negate(format: Fields, bits: number): number {
  return (bits + signBit(format)) % 2 ** format.storageBits;
}

const runs = { numRuns: scaled(50) };

describe.each(arithmetics)('a fused sum, $name', ({ row }) => {
  const format = operandFormats[row.operands[0]];
  const accumulator = formats[row.accumulator];
  const nan = accumulator.canonicalNan as number;
  const any = operandsOf(row, anything);

  it('does not depend on the order of the products', () => {
    const order = fc.shuffledSubarray(
      Array.from({ length: row.productsPerSum }, (_, i) => i),
      { minLength: row.productsPerSum },
    );
    fc.assert(
      fc.property(any, order, (operands, places) => {
        const { a, b, c } = operands;
        const permuted = { a: places.map((i) => a[i]), b: places.map((i) => b[i]), c };
        expect(sum(row, permuted)).toBe(sum(row, operands));
      }),
      runs,
    );
  });

  it('does not depend on which operand is A', () => {
    fc.assert(
      fc.property(any, ({ a, b, c }) => {
        expect(sum(row, { a: b, b: a, c })).toBe(sum(row, { a, b, c }));
      }),
      runs,
    );
  });

  it('of negated terms is the negated sum, but for NaN and +0', () => {
    fc.assert(
      fc.property(any, ({ a, b, c }) => {
        const negated = sum(row, {
          a: a.map((bits) => negate(format, bits)),
          b,
          c: negate(accumulator, c),
        });
        const plain = sum(row, { a, b, c });
        const expected = plain === nan || plain === 0 ? plain : negate(accumulator, plain);
        expect(negated).toBe(expected);
      }),
      runs,
    );
  });

  it('does not change by products with zero', () => {
    const place = fc.nat(row.productsPerSum - 1);
    fc.assert(
      fc.property(operandsOf(row, moderate), place, fc.boolean(), (operands, i, negative) => {
        const { a, b, c } = operands;
        const without = {
          a: a.filter((_, k) => k !== i),
          b: b.filter((_, k) => k !== i),
          c,
        };
        const zero = negative ? signBit(format) : 0;
        const withZero = { a: a.map((bits, k) => (k === i ? zero : bits)), b, c };
        expect(sum(row, withZero)).toBe(sum(row, without));
      }),
      runs,
    );
  });

  it('scales with powers of two where nothing under- or overflows', () => {
    const step = 2 ** (format.precision - 1) * 2 ** format.paddingBits;
    const accumulatorStep = 2 ** (accumulator.precision - 1);
    fc.assert(
      fc.property(operandsOf(row, moderate), ({ a, b, c }) => {
        const plain = decode<'fp32' | 'fp16'>(accumulator, sum(row, { a, b, c }));
        const doubled = sum(row, { a: a.map((bits) => bits + step), b, c: c + accumulatorStep });
        fc.pre(Math.abs(plain) * 2 <= accumulator.maxFinite);
        fc.pre(plain === 0 || Math.abs(plain) >= 2 ** accumulator.minExponent);
        expect(decode<'fp32' | 'fp16'>(accumulator, doubled)).toBe(2 * plain);
      }),
      runs,
    );
  });

  it('is nearly the sum: each term loses less than a unit, the result less than an ulp', () => {
    fc.assert(
      fc.property(operandsOf(row, moderate), (operands) => {
        const value = (bits: number) => {
          const { significand, exponent } = decodeOperand(format, bits);
          return { value: significand * 2 ** exponent, exponent };
        };
        const [a, b] = [operands.a.map(value), operands.b.map(value)];
        const c = decode<'fp32' | 'fp16'>(accumulator, operands.c);
        const exponentOfC = Math.floor(Math.log2(Math.abs(c)));
        const largest = Math.max(exponentOfC, ...a.map((x, i) => x.exponent + b[i].exponent));
        const unit = 2 ** (largest - row.alignedFractionBits);
        // Terms span few enough binades for fp64 to lose next to nothing.
        const exact = a.reduce((total, x, i) => total + x.value * b[i].value, c);
        const result = decode<'fp32' | 'fp16'>(accumulator, sum(row, operands));
        fc.pre(Number.isFinite(result));
        const ulp = Math.max(
          2 ** (Math.floor(Math.log2(Math.abs(result) || unit)) - row.resultFractionBits),
          2 ** (accumulator.minExponent - row.resultFractionBits),
        );
        const slack = 2 ** (largest + 6 - 52) * row.productsPerSum;
        const bound = (row.productsPerSum + 1) * unit + ulp + slack;
        expect(Math.abs(result - exact)).toBeLessThanOrEqual(bound);
      }),
      runs,
    );
  });

  it('of a NaN, of ∞·0 and of ∞ − ∞ is NaN', () => {
    fc.assert(
      fc.property(operandsOf(row, moderate), ({ a, b, c }) => {
        const infinity = accumulator.name === 'fp32' ? 0x7f800000 : 0x7c00;
        expect(sum(row, { a, b, c: infinity + 1 })).toBe(nan);
        expect(sum(row, { a, b, c: infinity })).toBe(infinity);
        const { specials, storageBits, paddingBits } = format;
        if (specials === 'finite') return;
        const allOnes = 2 ** (storageBits - 1) - 2 ** paddingBits;
        expect(sum(row, { a: [allOnes, ...a.slice(1)], b, c })).toBe(nan);
        if (specials !== 'ieee') return;
        const infinite = allOnes - (2 ** (format.precision - 1) - 1) * 2 ** paddingBits;
        expect(sum(row, { a: [infinite, ...a.slice(1)], b: [0, ...b.slice(1)], c })).toBe(nan);
        const opposite = negate(accumulator, infinity);
        const positive = [b[0] % signBit(format), ...b.slice(1)];
        const product = { a: [infinite, ...a.slice(1)], b: positive };
        expect(sum(row, { ...product, c })).toBe(infinity);
        expect(sum(row, { ...product, c: opposite })).toBe(nan);
      }),
      { numRuns: scaled(10) },
    );
  });
});

describe.each(tensorCoreArithmetic.filter(({ architecture }) => architecture !== 'sm_103'))(
  '$instruction on $architecture, $operands.0 into $accumulator',
  (arithmetic) => {
    it('composes: C of the second half is D of the first', () => {
      const aFormat = arithmetic.operands[0];
      const bFormat = arithmetic.mixed ? arithmetic.operands[1] : aFormat;
      const shape = { m: 1, n: 1, aFormat, bFormat };
      const patterns = (format: Fields) =>
        fc.array(anything(format), { minLength: 64, maxLength: 64 });
      const operands = fc.record({
        a: patterns(operandFormats[aFormat]),
        b: patterns(operandFormats[bFormat]),
        c: anything(formats[arithmetic.accumulator]),
      });
      fc.assert(
        fc.property(operands, ({ a, b, c }) => {
          const part = (from: number, to: number, start: ArrayLike<number>) =>
            tensorCoreProduct(arithmetic, {
              ...shape,
              k: to - from,
              a: a.slice(from, to),
              bTransposed: b.slice(from, to),
              c: start,
            });
          expect(part(32, 64, part(0, 32, [c]))).toEqual(part(0, 64, [c]));
        }),
        { numRuns: scaled(20) },
      );
    });
  },
);
