import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RoundingMode } from '../../../src/formats/index.js';
import {
  conversions,
  convertPacked,
  convertPair,
  specialFunctions,
  type ConversionName,
  type PackedConversionName,
  type PairConversionName,
  type SpecialFunctionName,
} from '../../../src/hardware/index.js';
import { findArithmetic } from '../../../src/machine/isa/arithmetic.js';
import { bits32, float32, reference, type Operation } from '../../arith/exact.js';
import { wordInstruction } from './fragments.js';
import { specialWords } from './patterns.js';

const anyBits = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const word = fc.oneof(
  anyBits,
  fc.constantFrom(...specialWords),
  fc.constantFrom(...specialWords.map((bits) => (bits | 0x80000000) >>> 0)),
  fc.float().map(bits32),
);
const signed = (bits: number): number => bits | 0;
const isNan = (bits: number): boolean => Number.isNaN(float32(bits));

function holds(check: (a: number, b: number, c: number) => void, numRuns = 300): void {
  const property = fc.property(word, word, word, (a, b, c) => {
    check(a, b, c);
  });
  fc.assert(property, { numRuns });
}

const evaluate = (name: string, ...sources: number[]): number =>
  wordInstruction(name, /^(min|max)/.test(name) ? sources.length : undefined).evaluate(...sources);

describe('fp32 arithmetic', () => {
  const modes: Readonly<Record<string, RoundingMode>> = {
    '.rn': 'nearest-even',
    '.rz': 'toward-zero',
    '.rm': 'down',
    '.rp': 'up',
  };
  const operations: Readonly<Record<string, Operation>> = {
    add: 'add',
    mul: 'multiply',
    fma: 'fma',
  };
  it.each(Object.keys(operations))('%s is rounded once from the exact result', (opcode) => {
    for (const [modifier, mode] of Object.entries(modes))
      for (const flushes of [false, true]) {
        const name = `${opcode}${modifier}${flushes ? '.ftz' : ''}.f32`;
        holds((a, b, c) => {
          const [x, y, z] = [a, b, c].map(float32);
          const expected = reference(operations[opcode], [x, y, z], mode, flushes);
          expect(evaluate(name, a, b, c), name).toBe(bits32(expected));
        }, 60);
      }
  });

  it('subtracts as it adds the negative', () => {
    for (const modifier of [...Object.keys(modes), ''])
      for (const ftz of ['', '.ftz'])
        holds((a, b) => {
          const sum = evaluate(`add${modifier}${ftz}.f32`, a, (b ^ 0x80000000) >>> 0);
          expect(evaluate(`sub${modifier}${ftz}.f32`, a, b)).toBe(sum);
        }, 60);
  });

  it('rounds to nearest even without a mode', () => {
    for (const opcode of ['add', 'sub', 'mul'])
      for (const ftz of ['', '.ftz'])
        holds((a, b) =>
          expect(evaluate(`${opcode}${ftz}.f32`, a, b)).toBe(
            evaluate(`${opcode}.rn${ftz}.f32`, a, b),
          ),
        );
  });

  it('packed is that of each word', () => {
    for (const name of ['add.rm.ftz.f32', 'mul.f32', 'fma.rn.f32', 'sub.rp.f32']) {
      const instruction = findArithmetic(`${name}x2`);
      expect(instruction.width === 2 && instruction.element).toBe(findArithmetic(name));
    }
  });
});

describe('min and max', () => {
  /** fp32 numbers in their order, −0 below +0. */
  const rank = (bits: number): number => (bits >>> 31 ? ~(bits & 0x7fffffff) : bits);

  it('choose by order, a number before a NaN', () => {
    holds((a, b) => {
      const numbers = [a, b].filter((bits) => !isNan(bits)).sort((x, y) => rank(x) - rank(y));
      expect(evaluate('min.f32', a, b)).toBe(numbers.at(0) ?? 0x7fffffff);
      expect(evaluate('max.f32', a, b)).toBe(numbers.at(-1) ?? 0x7fffffff);
    });
  });

  it('keep a NaN with .NaN and agree otherwise', () => {
    holds((a, b) => {
      for (const opcode of ['min', 'max']) {
        const expected = isNan(a) || isNan(b) ? 0x7fffffff : evaluate(`${opcode}.f32`, a, b);
        expect(evaluate(`${opcode}.NaN.f32`, a, b)).toBe(expected);
      }
    });
  });

  it('of three are those of a pair and the third, in every order', () => {
    holds((a, b, c) => {
      for (const name of ['min.f32', 'max.f32', 'max.NaN.f32', 'max.ftz.f32', 'min.ftz.NaN.f32']) {
        const three = evaluate(name, a, b, c);
        expect(three).toBe(evaluate(name, evaluate(name, a, b), c));
        expect(three).toBe(evaluate(name, c, a, b));
      }
    });
  });

  it('flush subnormals with .ftz alone', () => {
    expect(evaluate('max.f32', 1, 0)).toBe(1);
    expect(evaluate('max.ftz.f32', 1, 0)).toBe(0);
    expect(evaluate('min.ftz.f32', 0x80000001, 0)).toBe(0x80000000);
  });
});

describe('what src/hardware models', () => {
  it.each(Object.keys(conversions) as ConversionName[])('%s is executed', (name) => {
    holds((a, b) => {
      const { source, evaluate: lane } = conversions[name];
      const result = evaluate(name, a, b);
      if (name.endsWith('x2.f32'))
        expect(result).toBe(convertPair(name as PairConversionName, a, b));
      else if (source === 'fp16' && name !== 'cvt.f32.f16')
        expect(result).toBe(convertPacked(name as PackedConversionName, a));
      else if (source === 'e4m3' || source === 'e5m2')
        expect(result).toBe(convertPacked(name as PackedConversionName, a & 0xffff));
      else expect(result).toBe(lane(a & 0xffff));
    }, 100);
  });

  it.each(Object.keys(specialFunctions) as SpecialFunctionName[])('%s is executed', (name) => {
    const { format, evaluate: model } = specialFunctions[name];
    holds((a) => expect(evaluate(name, a)).toBe(model(format === 'fp32' ? a : a & 0xffff)), 100);
  });

  it('converts one operand as it does a lane of two', () => {
    for (const format of ['bf16', 'f16'])
      holds((a) =>
        expect(evaluate(`cvt.rn.${format}.f32`, a)).toBe(evaluate(`cvt.rn.${format}x2.f32`, 0, a)),
      );
  });
});

describe('conversions of integers', () => {
  it('come back when fp32 holds them', () => {
    fc.assert(
      fc.property(fc.integer({ min: -(2 ** 24), max: 2 ** 24 }), (n) => {
        for (const mode of ['n', 'z', 'm', 'p']) {
          const float = evaluate(`cvt.r${mode}.f32.s32`, n >>> 0);
          expect(float32(float)).toBe(n);
          expect(signed(evaluate(`cvt.r${mode}i.s32.f32`, float))).toBe(n);
        }
      }),
    );
  });

  it('enclose between rounding down and up, and cut to the range', () => {
    holds((a) => {
      const value = float32(a);
      if (isNan(a)) return expect(evaluate('cvt.rni.s32.f32', a)).toBe(0);
      const cut = Math.min(Math.max(value, -(2 ** 31)), 2 ** 31 - 1);
      const [down, up, near] = ['rmi', 'rpi', 'rni'].map((mode) =>
        signed(evaluate(`cvt.${mode}.s32.f32`, a)),
      );
      expect(down).toBe(Math.floor(cut) + 0);
      expect(up).toBe(Math.ceil(cut) + 0);
      expect(Math.abs(near - cut)).toBeLessThanOrEqual(0.5);
      if (Math.abs(near - cut) === 0.5) expect(near & 1).toBe(0);
    });
  });
});

describe('integers and bits', () => {
  it('multiply to the 64-bit product', () => {
    holds((a, b, c) => {
      for (const [type, exact] of [
        ['s32', BigInt(signed(a)) * BigInt(signed(b))],
        ['u32', BigInt(a) * BigInt(b)],
      ] as const) {
        const low = evaluate(`mul.lo.${type}`, a, b);
        const high = evaluate(`mul.hi.${type}`, a, b);
        expect(BigInt.asUintN(64, exact)).toBe((BigInt(high) << 32n) + BigInt(low));
        const sum = evaluate(`add.${type}`, low, c);
        expect(evaluate(`mad.lo.${type}`, a, b, c)).toBe(sum);
        expect(evaluate(`sub.${type}`, sum, c)).toBe(low);
      }
    });
  });

  it('look up every combination of three bits', () => {
    holds((a, b, c) => {
      const [x, y, z] = [0xf0, 0xcc, 0xaa];
      const tables: readonly (readonly [number, number])[] = [
        [x & y & z, a & b & c],
        [x ^ y ^ z, a ^ b ^ c],
        [(x & y) | (~x & z), (a & b) | (~a & c)],
        [~x | (y & ~z), ~a | (b & ~c)],
      ];
      for (const [table, expected] of tables)
        expect(evaluate('lop3.b32', a, b, c, table & 0xff)).toBe(expected >>> 0);
    });
  });

  it('insert a field that extraction gives back', () => {
    fc.assert(
      fc.property(
        anyBits,
        anyBits,
        fc.integer({ min: 0, max: 31 }),
        fc.integer({ min: 1, max: 32 }),
        (a, b, position, length) => {
          const bits = Math.min(length, 32 - position);
          const whole = evaluate('bfi.b32', a, b, position, length);
          const field = Number(BigInt.asUintN(bits, BigInt(a)));
          expect(evaluate('bfe.u32', whole, position, bits)).toBe(field);
          expect(signed(evaluate('bfe.s32', whole, position, bits))).toBe(
            Number(BigInt.asIntN(bits, BigInt(a))),
          );
          const others = evaluate('bfi.b32', b, whole, position, 0);
          expect(evaluate('bfi.b32', 0, others, position, length)).toBe(
            evaluate('bfi.b32', 0, b, position, length),
          );
        },
      ),
    );
  });

  it('shift as PTX clamps or wraps', () => {
    holds((a, b, c) => {
      const both = (BigInt(b) << 32n) | BigInt(a);
      const clamped = BigInt(Math.min(c, 32));
      const wrapped = BigInt(c & 31);
      const left = (n: bigint): number => Number(BigInt.asUintN(64, both << n) >> 32n);
      const right = (n: bigint): number => Number(BigInt.asUintN(32, both >> n));
      expect(evaluate('shf.l.clamp.b32', a, b, c)).toBe(left(clamped));
      expect(evaluate('shf.l.wrap.b32', a, b, c)).toBe(left(wrapped));
      expect(evaluate('shf.r.clamp.b32', a, b, c)).toBe(right(clamped));
      expect(evaluate('shf.r.wrap.b32', a, b, c)).toBe(right(wrapped));
      expect(evaluate('shl.b32', a, c)).toBe(Number(BigInt.asUintN(32, BigInt(a) << clamped)));
      expect(evaluate('shr.u32', a, c)).toBe(Number(BigInt(a) >> clamped));
      expect(signed(evaluate('shr.s32', a, c))).toBe(Number(BigInt(signed(a)) >> clamped));
    });
  });

  it('permute bytes', () => {
    expect(evaluate('prmt.b32', 0x33221100, 0x77665544, 0x7351)).toBe(0x77335511);
    expect(evaluate('prmt.b32', 0x80, 0x7f, 0xc8)).toBe(0x808000ff);
    expect(evaluate('prmt.b32.b4e', 0x33221100, 0x77665544, 1)).toBe(0x66770011);
  });
});

describe('comparisons', () => {
  const orders = ['eq', 'ne', 'lt', 'le', 'gt', 'ge'];
  const opposites: Readonly<Record<string, string>> = {
    eq: 'ne',
    ne: 'eq',
    lt: 'ge',
    le: 'gt',
    gt: 'le',
    ge: 'lt',
  };

  it('of fp32 numbers are the complements of the opposite, unordered', () => {
    holds((a, b) => {
      for (const order of orders) {
        const result = evaluate(`setp.${order}.f32`, a, b);
        expect(evaluate(`setp.${opposites[order]}u.f32`, a, b)).toBe(1 - result);
        if (isNan(a) || isNan(b)) expect(result).toBe(0);
      }
      expect(evaluate('setp.nan.f32', a, b)).toBe(isNan(a) || isNan(b) ? 1 : 0);
      expect(evaluate('setp.num.f32', a, b)).toBe(1 - evaluate('setp.nan.f32', a, b));
    });
  });

  it('select the minimum and the maximum', () => {
    holds((a, b) => {
      for (const type of ['s32', 'u32', 'f32']) {
        if (type === 'f32' && (isNan(a) || isNan(b) || float32(a) === float32(b))) continue;
        const isLess = evaluate(`setp.lt.${type}`, a, b);
        expect(evaluate('selp.b32', a, b, isLess)).toBe(evaluate(`min.${type}`, a, b));
        expect(evaluate('selp.b32', b, a, isLess)).toBe(evaluate(`max.${type}`, a, b));
      }
    });
  });

  it('combine with a predicate', () => {
    holds((a, b, c) => {
      const p = c & 1;
      const result = evaluate('setp.le.u32', a, b);
      for (const combination of ['and', 'or', 'xor'])
        expect(evaluate(`setp.le.${combination}.u32`, a, b, p)).toBe(
          evaluate(`${combination}.pred`, result, p),
        );
    });
  });
});
