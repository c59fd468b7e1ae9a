import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findLaneInstruction, type LaneValue } from '../../../../src/ptx/instructions/index.js';
import { bits64 } from '../../../arith/exact.js';
import { operand, operandsOf, row } from './rows.js';
import { patternCount } from './silicon-patterns.js';

describe('definitions for all widths', () => {
  it('give for 16 and 32 bits the low bits of what they give for 64', () => {
    const names = [
      ...['add', 'sub', 'min', 'max', 'mul.lo', 'div', 'rem', 'and', 'or', 'xor'],
      ...['abs', 'neg', 'not', 'cnot', 'mad.lo', 'sad'],
    ];
    for (const name of names)
      for (const sign of ['u', 's', 'b'])
        for (const bits of [16, 32] as const) {
          const [opcode, ...modifiers] = name.split('.');
          const short = findLaneInstruction(opcode, [...modifiers, `${sign}${bits}`]);
          if (short === null) continue;
          const long = row(`${name}.${sign}64`);
          const extend = (value: LaneValue) =>
            BigInt.asUintN(64, sign === 's' ? BigInt.asIntN(bits, BigInt(value)) : BigInt(value));
          for (let pattern = 0; pattern < patternCount; pattern += 31) {
            const operands = operandsOf(short, pattern);
            const wide = long.evaluate(...operands.map(extend)) as bigint;
            const result = short.evaluate(...operands);
            if (BigInt(result as number) !== BigInt.asUintN(bits, wide))
              expect.fail(`${short.name}(${operands.join()}) = ${String(result)}`);
          }
        }
  });
});

describe('carries', () => {
  it('chain words to sums, differences and products of any length', () => {
    const words = fc.array(fc.integer({ min: 0, max: 2 ** 32 - 1 }), {
      minLength: 4,
      maxLength: 4,
    });
    const joined = (list: readonly LaneValue[]) =>
      list.reduce<bigint>((total, word, i) => total | (BigInt(word) << BigInt(32 * i)), 0n);
    fc.assert(
      fc.property(words, words, (a, b) => {
        for (const opcode of ['add', 'sub'] as const) {
          const first = row(`${opcode}.cc.u32`, [32, 'pred']);
          const next = row(`${opcode}c.cc.u32`, [32, 'pred'], 3);
          let [word, carry] = first.evaluate(a[0], b[0]) as readonly LaneValue[];
          const result = [word];
          for (let i = 1; i < 4; i++) {
            [word, carry] = next.evaluate(a[i], b[i], carry) as readonly LaneValue[];
            result.push(word);
          }
          const whole = opcode === 'add' ? joined(a) + joined(b) : joined(a) - joined(b);
          expect(joined(result)).toBe(BigInt.asUintN(128, whole));
          expect(carry).toBe(whole >= 0n && whole < 2n ** 128n ? 0 : 1);
        }
        // The square of 64 bits plus b, as nvcc multiplies.
        const high = row('mad.hi.cc.u32', [32, 'pred'], 3);
        const [low, carry] = row('mad.lo.cc.u32', [32, 'pred'], 3).evaluate(
          a[0],
          a[1],
          b[0],
        ) as readonly LaneValue[];
        const top = row('madc.hi.u32', [32], 4).evaluate(a[0], a[1], b[1], carry);
        expect(joined([low, top as LaneValue])).toBe(
          BigInt.asUintN(64, BigInt(a[0]) * BigInt(a[1]) + joined([b[0], b[1]])),
        );
        expect(high.destinations.length).toBe(2);
      }),
      { numRuns: 20 },
    );
  });
});

describe('setp', () => {
  it('gives q as the comparison negated, then combined', () => {
    for (const [combination, combine] of [
      ['and', (x: boolean, y: boolean) => x && y],
      ['or', (x: boolean, y: boolean) => x || y],
      ['xor', (x: boolean, y: boolean) => x !== y],
    ] as const)
      for (const type of ['s64', 'f32', 'u16', 'f64']) {
        const width = Number(type.slice(1)) as 16 | 32 | 64;
        const plain = row(`setp.lt.${type}`, ['pred'], 2);
        const pair = row(`setp.lt.${combination}.${type}`, ['pred', 'pred'], 3);
        for (let pattern = 0; pattern < patternCount; pattern += 61) {
          const [a, b] = [operand(pattern, 0, width), operand(pattern, 1, width)];
          const holds = plain.evaluate(a, b) === 1;
          for (const c of [0, 1])
            expect(pair.evaluate(a, b, c)).toEqual(
              [combine(holds, c === 1), combine(!holds, c === 1)].map(Number),
            );
        }
      }
  });

  it('knows NaN', () => {
    const nan = 0x7ff8000000000001n;
    const one = bits64(1);
    for (const name of ['eq', 'ne', 'lt', 'le', 'gt', 'ge', 'num'])
      expect(row(`setp.${name}.f64`).evaluate(nan, one), name).toBe(0);
    for (const name of ['equ', 'neu', 'ltu', 'leu', 'gtu', 'geu', 'nan'])
      expect(row(`setp.${name}.f64`).evaluate(one, nan), name).toBe(1);
    expect(row('setp.ne.f16').evaluate(0x7e00, 0x7e00)).toBe(0);
    expect(row('setp.eq.f16x2', ['pred', 'pred']).evaluate(0x00007e00, 0x80007e00)).toEqual([0, 1]);
    expect(row('set.gt.f32.f32').evaluate(0x40000000, 0x3f800000)).toBe(0x3f800000);
    expect(row('set.gt.u32.s32').evaluate(5, 0xffffffff)).toBe(0xffffffff);
    expect(row('slct.b64.f32').evaluate(1n, 2n, 0x80000000)).toBe(1n);
    expect(row('slct.b64.f32').evaluate(1n, 2n, 0x7fc00000)).toBe(2n);
    expect(row('testp.normal.f32').evaluate(0)).toBe(1);
    expect(row('testp.subnormal.f64').evaluate(1n)).toBe(1);
  });
});

describe('bits', () => {
  it('are found as PTX says', () => {
    expect(row('bfind.u64').evaluate(2n ** 40n)).toBe(40);
    expect(row('bfind.s64').evaluate(2n ** 64n - 1n)).toBe(0xffffffff);
    expect(row('bfind.shiftamt.s32').evaluate(0xfffffff0)).toBe(28);
    expect(row('clz.b64').evaluate(1n)).toBe(63);
    expect(row('brev.b64').evaluate(1n)).toBe(2n ** 63n);
    expect(row('bfe.u64').evaluate(2n ** 64n - 1n, 60, 256)).toBe(15n);
    expect(row('bfe.s64').evaluate(2n ** 63n, 300, 1)).toBe(2n ** 64n - 1n);
    expect(row('bfi.b64').evaluate(1n, 7n, 256, 8)).toBe(7n);
    expect(row('fns.b32').evaluate(1, 0, 2 ** 31)).toBe(0);
    expect(row('fns.b32').evaluate(0b1011000, 3, 2)).toBe(4);
    expect(row('fns.b32').evaluate(0b1011000, 5, 0xffffffff)).toBe(4);
    expect(row('fns.b32').evaluate(0b1011000, 3, 0)).toBe(3);
    expect(row('fns.b32').evaluate(0b1011000, 5, 0)).toBe(0xffffffff);
    expect(row('bmsk.clamp.b32').evaluate(28, 8)).toBe(0xf0000000);
    expect(row('bmsk.wrap.b32').evaluate(33, 2)).toBe(6);
    expect(row('szext.wrap.s32').evaluate(0x80, 8)).toBe(0xffffff80);
    expect(row('szext.clamp.u32').evaluate(0xffffffff, 40)).toBe(0xffffffff);
    expect(row('dp4a.s32.u32').evaluate(0xff010203, 0x04030201, 10)).toBe(
      (-4 + 3 + 4 + 3 + 10) >>> 0,
    );
    expect(row('dp2a.hi.s32.s32').evaluate(0xffff0002, 0x05ff0000, 0)).toBe((-5 - 2) >>> 0);
    expect(row('lop3.and.b32', [32, 'pred'], 5).evaluate(5, 3, 6, 0x96, 1)).toEqual([0, 0]);
  });
});
