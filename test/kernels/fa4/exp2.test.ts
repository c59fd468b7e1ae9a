import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createExp2PolynomialArray,
  exp2Coefficients,
  exp2Pattern,
  exp2Polynomial,
  exp2PolynomialBits,
  exp2Tunings,
  polynomialShare,
  reduceRange,
  usesPolynomial,
  type Exp2Configuration,
  type PolynomialDegree,
} from '../../../kernels/fa4/index.js';
import { addFloat32, fusedMultiplyAddFloat32, subtractFloat32 } from '../../../src/arith/index.js';
import { mismatchingBlocks } from '../../../src/conform/index.js';
import { formats, nextDown, nextUp } from '../../../src/formats/index.js';
import { scaled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const folder = new URL('../../../fixtures/silicon/sm_90/', import.meta.url);
const fixture = (file: string): Buffer => readFileSync(new URL(file, folder));
const degrees: readonly PolynomialDegree[] = [1, 2, 3, 4, 5];

const words = new Uint32Array(1);
const float = new Float32Array(words.buffer);
const fromBits = (bits: number): number => {
  words[0] = bits;
  return float[0];
};
const toBits = (x: number): number => {
  float[0] = x;
  return words[0];
};

/** Blocks of 2^20 bit patterns: eight to a binade. */
const blockOf = (x: number): number => toBits(x) >>> 20;

/**
 * The blocks around every place where the function changes its ways, of both signs: zeros and
 * subnormals, 2^-25, 1, −126 to −128, 127 to 128, 2^22 and 2^23 (where the sum with 2^23 + 2^22 loses
 * bits), the largest numbers, infinities and NaNs.
 */
function edgeBlocks(): number[] {
  const edges = [2 ** -126, 2 ** -25, 1, 126, 127, 128, 2 ** 22, 2 ** 23]
    .flatMap((x) => [blockOf(x) - 1, blockOf(x)])
    .concat([0, 0x7f7, 0x7f8, 0x7ff]);
  return [...new Set(edges.flatMap((block) => [block, block + 0x800]))];
}

/** A block of every 24th binade of each sign. */
function spreadBlocks(): number[] {
  const exponents = Array.from({ length: 10 }, (_, i) => 24 * i + 5);
  return exponents.flatMap((e) => [8 * e + (e % 8), 0x800 + 8 * e + ((3 * e) % 8)]);
}

/** The blocks to compare; `flashproof conform --exhaustive` has them all. */
const comparedBlocks = [...edgeBlocks(), ...spreadBlocks()];

describe.each(degrees)('the polynomial of degree %i on an H200', (degree) => {
  const evaluate = createExp2PolynomialArray(degree);

  inTurn('is matched bit for bit', () => {
    const expected = fixture(`hash_fa4_ex2_poly${degree}.bin`);
    expect(mismatchingBlocks(evaluate, { expected, blocks: comparedBlocks })).toEqual([]);
  });

  it('is told apart from its neighbours', () => {
    const other = degree === 5 ? 4 : ((degree + 1) as PolynomialDegree);
    const expected = fixture(`hash_fa4_ex2_poly${other}.bin`);
    expect(mismatchingBlocks(evaluate, { expected, blocks: [0x3f0] })).toEqual([0x3f0]);
  });
});

describe('special inputs on an H200', () => {
  const captured = fixture('pairs_fa4_ex2_poly3.bin');
  const pairs = Array.from({ length: captured.length / 8 }, (_, i) => ({
    input: captured.readUInt32LE(8 * i),
    result: captured.readUInt32LE(8 * i + 4),
  }));

  it('holds 26 pairs', () => expect(pairs).toHaveLength(26));

  it.each(pairs)('$input gives $result', ({ input, result }) => {
    expect(exp2PolynomialBits(fromBits(input))).toBe(result);
  });
});

/** The function as the GPU's instructions have it, FTZ on the first addition or on every operation. */
function instructionByInstruction(
  x: number,
  degree: PolynomialDegree,
  flushesEverywhere: boolean,
): number {
  const rest = { flushToZero: flushesEverywhere };
  const clamped = x > -127 ? x : -127;
  const r = addFloat32(clamped, 12582912, { rounding: 'down', flushToZero: true });
  const b = subtractFloat32(r, 12582912, rest);
  const f = subtractFloat32(clamped, b, rest);
  const p = exp2Coefficients[degree].reduceRight((sum, c) =>
    fusedMultiplyAddFloat32(sum, f, c, rest),
  );
  const polynomial = Number.isNaN(p) ? 0x7fffffff : toBits(p);
  return ((toBits(r) << 23) + polynomial) >>> 0;
}

describe('the forms of the function', () => {
  const bits = fc.oneof(
    fc.integer({ min: 0, max: 2 ** 32 - 1 }),
    fc.float({ min: -160, max: 160, noNaN: true }).map(toBits),
    fc.integer({ min: -200, max: 200 }).map((n) => toBits(Math.fround(n * (1 + 2 ** -23)))),
    // Subnormals of both signs, and the tiny numbers whose sum with 1 rounds to 1.
    fc.integer({ min: 0, max: 2 ** 23 }).map((n) => n + (n % 2) * 2 ** 31),
    fc.float({ min: Math.fround(-(2 ** -23)), max: 0, noNaN: true }).map(toBits),
    // Where the sum with 2^23 + 2^22 rounds.
    fc.float({ min: 2 ** 21, max: 2 ** 26, noNaN: true }).map(toBits),
  );

  const arrays = new Map(degrees.map((degree) => [degree, createExp2PolynomialArray(degree)]));

  it('array and scalar agree, and FTZ on the later operations changes nothing', () => {
    fc.assert(
      fc.property(bits, fc.constantFrom(...degrees), (input, degree) => {
        const x = fromBits(input);
        const result = new Uint32Array(1);
        arrays.get(degree)!(Uint32Array.of(input), result);
        expect(result[0]).toBe(exp2PolynomialBits(x, degree));
        expect(result[0]).toBe(instructionByInstruction(x, degree, false));
        expect(result[0]).toBe(instructionByInstruction(x, degree, true));
      }),
      { numRuns: scaled(2500) },
    );
  });

  it('refuses unknown degrees and room for too few results', () => {
    expect(() => exp2Polynomial(1, 6 as PolynomialDegree)).toThrow(
      /no exp2 polynomial of degree 6/,
    );
    expect(() => createExp2PolynomialArray()(new Uint32Array(2), new Uint32Array(1))).toThrow(
      RangeError,
    );
  });

  it('has coefficients that are fp32 numbers', () => {
    for (const degree of degrees) {
      expect(exp2Coefficients[degree]).toHaveLength(degree + 1);
      for (const c of exp2Coefficients[degree]) expect(Math.fround(c)).toBe(c);
    }
  });
});

describe('the range reduction', () => {
  it('splits x into an integer and a fraction that make it up, for −127 ≤ x ≤ 127', () => {
    fc.assert(
      fc.property(fc.float({ min: -127, max: 127, noNaN: true }), (x) => {
        const { integerBits, fraction } = reduceRange(x);
        const integer = integerBits >> 23;
        // A subnormal is flushed to 0 before it is floored.
        expect(integer).toBe(Math.abs(x) < 2 ** -126 ? 0 : Math.floor(x));
        expect(fraction).toBe(Math.fround(x - integer));
        expect(fraction >= 0 || Math.abs(x) < 2 ** -126).toBe(true);
        expect(fraction <= 1).toBe(true);
      }),
      { numRuns: scaled(1000) },
    );
  });

  it('has fraction 1 for exactly the tiny negative normal numbers that 1 swallows', () => {
    expect(reduceRange(-(2 ** -25))).toEqual({ integerBits: -1 << 23, fraction: 1 });
    expect(reduceRange(-(2 ** -126))).toEqual({ integerBits: -1 << 23, fraction: 1 });
    expect(reduceRange(nextDown(formats.fp32, -(2 ** -25))).fraction).toBe(1 - 2 ** -24);
  });
});

describe('the corners', () => {
  it.each([-127, nextDown(formats.fp32, -127), -128, -1e30, -Infinity, NaN])(
    '%d gives +0: what lies below is clamped, and a NaN is dropped',
    (x) => {
      for (const degree of degrees) expect(exp2PolynomialBits(x, degree)).toBe(0);
    },
  );

  it('is a subnormal pattern between −127 and −126 that is not 2^x', () => {
    // The pattern is linear in the polynomial, (p − 1)·2^-126, while 2^x is p·2^-127.
    fc.assert(
      fc.property(
        fc.float({
          min: nextUp(formats.fp32, -127),
          max: nextDown(formats.fp32, -126),
          noNaN: true,
        }),
        (x) => {
          const p = exp2Polynomial(Math.fround(x + 127));
          expect(exp2Polynomial(x)).toBe((p - 1) * 2 ** -126);
        },
      ),
    );
    expect(exp2Polynomial(-126.5)).toBeLessThan(0.83 * 2 ** -126.5);
    expect(exp2Polynomial(-126)).toBe(2 ** -126);
  });

  it('is 0.99991 for tiny negative numbers, the polynomial at 1 halved, but 1 for subnormals', () => {
    for (const x of [-1e-10, -(2 ** -25), -(2 ** -126)])
      expect(exp2Polynomial(Math.fround(x))).toBe(0.999914824962616);
    for (const x of [-0, -(2 ** -149), 2 ** -126 - 2 ** -149, -(2 ** -126) + 2 ** -149, 1e-10])
      expect(exp2Polynomial(Math.fround(x))).toBe(1);
  });

  it('is exact at integers from −126 to 127 in every degree', () => {
    for (const degree of degrees)
      for (let n = -126; n <= 127; n++) expect(exp2Polynomial(n, degree)).toBe(2 ** n);
  });

  it('leaves what the wrap-around makes of x ≥ 128', () => {
    expect(exp2Polynomial(128)).toBe(Infinity);
    expect(exp2PolynomialBits(129)).toBe(0x80000000);
    expect(exp2PolynomialBits(255)).toBe(0xbf000000);
    expect(exp2Polynomial(256)).toBe(-1);
    expect(exp2Polynomial(formats.fp32.maxFinite)).toBe(0.5);
    expect(exp2PolynomialBits(Infinity)).toBe(0x7fffffff);
  });

  it('errs by the 8.8e-5 of the paper in degree 3, and less with each degree', () => {
    const worst = degrees.map((degree) => {
      let error = 0;
      for (let k = 0; k < 2 ** 16; k++) {
        const x = k * 2 ** -16;
        error = Math.max(error, Math.abs(exp2Polynomial(x, degree) / 2 ** x - 1));
      }
      return error;
    });
    expect(worst[2]).toBeGreaterThan(8.7e-5);
    expect(worst[2]).toBeLessThan(8.85e-5);
    for (let i = 1; i < worst.length; i++) expect(worst[i]).toBeLessThan(worst[i - 1] / 10);
  });
});

describe('the tuning', () => {
  const base: Exp2Configuration = {
    headDim: 128,
    causal: false,
    ctas: 2,
    architecture: 'sm_100',
    inputBits: 16,
  };
  const share = (change: Partial<Exp2Configuration>): number =>
    polynomialShare(exp2Pattern({ ...base, ...change }));

  it('has the polynomial compute what the source says, by head dimension and mask', () => {
    // Pairs of a fragment by hand: k mod 10 ≥ 6 for k = 6, 8, 16, 18, 26, 28; two fragments of four.
    expect(share({})).toBe((6 * 2 * 2) / 128);
    // k mod 16 ≥ 12: 12, 14, 28, 30.
    expect(share({ causal: true, ctas: 1 })).toBe((4 * 2 * 2) / 128);
    // The same in three fragments.
    expect(share({ headDim: 192 })).toBe((4 * 2 * 3) / 128);
    // k mod 32 ≥ 28: 28, 30.
    expect(share({ headDim: 192, causal: true, ctas: 1 })).toBe((2 * 2 * 2) / 128);
    // k mod 14 ≥ 10: 10, 12, 24, 26 in three fragments.
    expect(share({ headDim: 256 })).toBe((4 * 2 * 3) / 128);
    expect(share({ headDim: 256, causal: true })).toBe((4 * 2 * 3) / 128);
    expect(share({ headDim: 256, ctas: 1 })).toBe(0);
    expect(share({ headDim: 64, ctas: 1 })).toBe((4 * 2 * 2) / 128);
    // fp8, k mod 8 ≥ 4: 4, 6, 12, 14, …, 8 pairs.
    expect(share({ causal: true, ctas: 1, inputBits: 8 })).toBe((8 * 2 * 2) / 128);
    expect(share({ inputBits: 8 })).toBe(share({}));
  });

  it('uses the hardware only on sm_103', () => {
    for (const headDim of [32, 64, 96, 128, 192, 256])
      for (const causal of [false, true])
        for (const inputBits of [16, 8] as const)
          expect(
            share({ headDim, causal, ctas: causal ? 1 : 2, inputBits, architecture: 'sm_103' }),
          ).toBe(0);
    expect(share({ headDim: 256, causal: true, architecture: 'sm_103' })).toBe(0);
  });

  it('pads the head dimension to 16 and falls back where nothing is tuned', () => {
    expect(exp2Pattern({ ...base, headDim: 120 })).toEqual(exp2Pattern(base));
    expect(exp2Pattern({ ...base, headDim: 80, causal: true })).toEqual({
      frequency: 16,
      reserve: 4,
      startFragment: 1,
    });
    expect(exp2Pattern({ ...base, headDim: 160 }).frequency).toBe(0);
    expect(exp2Pattern({ ...base, headDim: 192, ctas: 1 }).frequency).toBe(0);
  });

  it('has frequencies of their own for packed groups without a mask', () => {
    const packed = { packedGroups: true };
    expect(exp2Pattern({ ...base, ...packed }).frequency).toBe(10);
    expect(exp2Pattern({ ...base, ...packed, headDim: 192 }).frequency).toBe(16);
    expect(exp2Pattern({ ...base, ...packed, headDim: 96 }).frequency).toBe(10);
    expect(exp2Pattern({ ...base, ...packed, headDim: 64 }).frequency).toBe(16);
    expect(exp2Pattern({ ...base, ...packed, headDim: 96, local: true }).frequency).toBe(16);
    expect(exp2Pattern({ ...base, ...packed, variableLength: true }).frequency).toBe(32);
    expect(exp2Pattern({ ...base, variableLength: true }).frequency).toBe(10);
  });

  it('treats the two columns of a pair alike, and the last fragment by hardware', () => {
    for (const { pattern } of exp2Tunings)
      for (let fragment = 0; fragment < 4; fragment++)
        for (let k = 0; k < 32; k += 2) {
          const uses = usesPolynomial(pattern, fragment, k);
          expect(usesPolynomial(pattern, fragment, k + 1)).toBe(uses);
          if (fragment === 3 || fragment < pattern.startFragment) expect(uses).toBe(false);
        }
  });

  it('refuses what no kernel has', () => {
    expect(() => exp2Pattern({ ...base, headDim: 0 })).toThrow(/head dimension 0/);
    expect(() => usesPolynomial(exp2Pattern(base), 4, 0)).toThrow(/no fragment 4/);
    expect(() => usesPolynomial(exp2Pattern(base), 0, 32)).toThrow(/no column 32/);
  });
});
