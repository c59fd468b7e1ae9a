import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type LaneValue, laneRows, type Variant } from '../../src/isa/index.js';
import {
  findBitsEffects,
  findByteMoves,
  fromNowhere,
  isChanged,
  type ProbedOperand,
} from '../../src/meaning/rules/index.js';
import { wordSource } from '../hardware/tensor-core/random-patterns.js';
import { scaled } from '../setup/effort.js';

const variants = laneRows.flatMap((row) => row.variants());
const movers = variants.filter(({ meaning }) => meaning === 'moves');

function bytesOf(width: Variant['sources'][number]): number {
  return width === 'pred' ? 0 : width / 8;
}

function operandOf(bytes: number, draw: () => number): LaneValue {
  let value = 0n;
  for (let i = 0; i < bytes; i++) value = (value << 8n) | BigInt(draw() & 0xff);
  return bytes > 4 ? value : Number(value);
}

function byteOf(value: LaneValue, byte: number): number {
  return Number((BigInt(value) >> BigInt(8 * byte)) & 0xffn);
}

/** Operands of which all bytes vary. */
function varying({ sources }: Variant): ProbedOperand[] {
  return sources.map((width) => ({
    value: bytesOf(width) > 4 ? 0n : 0,
    varying: 2 ** bytesOf(width) - 1,
  }));
}

function named(name: string): Variant {
  return variants.find((variant) => variant.name === name)!;
}

describe('the bytes that an instruction moves', () => {
  it('are where they are found, for each instruction that says that it moves bytes', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const next = wordSource(seed);
        for (const variant of movers) {
          const maps = findByteMoves(variant, varying(variant));
          const operands = variant.sources.map((width) => operandOf(bytesOf(width), next));
          const result = variant.evaluate(...operands);
          const results = typeof result === 'object' ? result : [result];
          maps.forEach((map, d) =>
            map.forEach((origin, byte) => {
              expect([variant.name, origin]).not.toEqual([variant.name, isChanged]);
              const got = byteOf(results[d], byte);
              if (origin === fromNowhere) expect([0, 0xff]).toContain(got);
              else expect(got).toBe(byteOf(operands[origin >> 4], origin & 15));
            }),
          );
        }
      }),
      { numRuns: scaled(4) },
    );
  });

  it('are none where a mask changes a part of a byte, or a shift moves bits across bytes', () => {
    const partial = (name: string, constant: number): boolean =>
      findByteMoves(named(name), [
        { value: 0, varying: 0xf },
        { value: constant, varying: 0 },
      ])[0].includes(isChanged);
    for (let cut = 1; cut < 32; cut++) {
      const isWhole = cut % 8 === 0;
      expect([cut, partial('and.b32', 0xffffffff - (2 ** cut - 1))]).toEqual([cut, !isWhole]);
      expect([cut, partial('shl.b32', cut)]).toEqual([cut, !isWhole]);
      expect([cut, partial('shr.u32', cut)]).toEqual([cut, !isWhole]);
    }
    // A sign alone is a decision, no move.
    expect(partial('shr.s32', 31)).toBe(true);
    expect(partial('add.s32', 0)).toBe(false);
    expect(partial('add.s32', 256)).toBe(true);
  });

  it('are those of two operands where each has zeros in place of the other: halves that are joined', () => {
    const [map] = findByteMoves(named('or.b32'), [
      { value: 0, varying: 0b0011 },
      { value: 0, varying: 0b1100 },
    ]);
    expect([...map]).toEqual([0, 1, 16 + 2, 16 + 3]);
  });
});

it('an operation on bits keeps a significand, changes it, or takes no notice of it', () => {
  const significand = 2n ** 23n - 1n;
  const effect = (name: string, other: number) =>
    findBitsEffects(named(name), [null, other], [significand, 0n])[0];
  for (let exponent = 1; exponent < 256; exponent += 7) {
    const power = exponent * 2 ** 23;
    for (const name of ['add.s32', 'sub.s32', 'xor.b32', 'or.b32'])
      expect([name, effect(name, power)]).toEqual([name, 'kept']);
    for (const name of ['add.s32', 'xor.b32', 'and.b32'])
      expect([name, effect(name, power + 1)]).toEqual([name, 'changed']);
    expect(effect('and.b32', power)).toBe('none');
  }
  expect(effect('and.b32', 0x007fffff)).toBe('kept');
  expect(effect('and.b32', 0x807fffff)).toBe('kept');
  expect(effect('shr.u32', 23)).toBe('none');
  expect(effect('shr.u32', 22)).toBe('changed');
  expect(effect('shl.b32', 1)).toBe('changed');
});
