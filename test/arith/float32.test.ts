import { describe, expect, test } from 'vitest';
import {
  addFloat32,
  fusedMultiplyAddFloat32,
  multiplyFloat32,
  roundSumToFloat32,
  subtractFloat32,
  type Float32Options,
} from '../../src/arith/index.js';
import type { RoundingMode } from '../../src/formats/index.js';
import { RequestError } from '../../src/request-error.js';
import { bits32, float32, reference, type Operation } from './exact.js';
import { float32Pattern, mix } from './float32-patterns.js';
import { scaled, testSeed } from '../setup/effort.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const patternCount = scaled(10_000);
const modes: readonly RoundingMode[] = ['nearest-even', 'toward-zero', 'down', 'up'];
const maxFinite = float32(0x7f7fffff);

type Operands = readonly [number, number, number];

const operations: Record<Operation, (operands: Operands, options?: Float32Options) => number> = {
  add: ([a, b], options) => addFloat32(a, b, options),
  multiply: ([a, b], options) => multiplyFloat32(a, b, options),
  fma: ([a, b, c], options) => fusedMultiplyAddFloat32(a, b, c, options),
};

/** Fails with the operands' bits where an operation differs from the reference in any variant. */
function check(operation: Operation, operands: Operands): void {
  const run = operations[operation];
  for (const rounding of modes) {
    for (const flushToZero of [false, true]) {
      const wanted = reference(operation, operands, rounding, flushToZero);
      const got = run(operands, { rounding, flushToZero });
      if (!Object.is(got, wanted))
        fail(operation, operands, `${rounding} ${flushToZero}`, got, wanted);
    }
  }
  const wanted = reference(operation, operands, 'nearest-even', false);
  for (const options of [undefined, {}, { flushToZero: false }]) {
    const got = run(operands, options);
    if (!Object.is(got, wanted)) fail(operation, operands, JSON.stringify(options), got, wanted);
  }
}

function fail(operation: string, operands: Operands, how: string, got: number, wanted: number) {
  const hex = operands.map((x) => bits32(x).toString(16)).join(' ');
  throw new Error(`${operation} of ${hex}, ${how}: ${got}, not ${wanted} (TEST_SEED=${testSeed})`);
}

describe('fp32 operations against exact integer arithmetic', () => {
  inTurn.each(Object.keys(operations) as Operation[])(
    '%s over every kind of pattern',
    (operation) => {
      const words = new Uint32Array(3);
      for (let i = 0; i < patternCount; i++) {
        float32Pattern(testSeed, i, words);
        check(operation, [float32(words[0]), float32(words[1]), float32(words[2])]);
      }
    },
  );

  test('products that fall within 2^−46 of half an ulp of the addend', () => {
    for (let i = 0; i < scaled(1500); i++) {
      const word = mix(testSeed + i);
      const c = float32(word);
      const halfUlp = 2 ** (Math.max((word >>> 23) & 255, 1) - 151);
      if (!Number.isFinite(c) || halfUlp < 2 ** -120) continue;
      const away = ((mix(word) & 255) + 1) * 2 ** -23;
      for (const sign of [1, -1]) {
        check('fma', [1 + away, sign * halfUlp * (1 - away), c]);
        check('fma', [1 + 2 ** -23, sign * halfUlp, c]);
        check('fma', [1 - 2 ** -24, sign * halfUlp, c]);
        check('fma', [2 ** -60, sign * 2 ** -60, c]);
      }
    }
  });

  test('results within an ulp of overflow and of the smallest normal', () => {
    for (let i = 0; i < 512; i++) {
      const step = (i - 256) * 2 ** -23;
      const near = Math.fround(1 + step);
      const inverse = Math.fround(1 - step);
      for (const sign of [1, -1]) {
        check('fma', [sign * 2 ** 52, 2 ** 51 * near, sign * maxFinite]);
        check('fma', [sign * 2 ** 52 * inverse, 2 ** 51 * near, sign * maxFinite]);
        check('multiply', [sign * 2 ** 64 * inverse, 2 ** 64 * near, 0]);
        check('multiply', [sign * 2 ** -63 * inverse, 2 ** -63 * near, 0]);
        check('fma', [sign * 2 ** -70 * near, 2 ** -81, -sign * 2 ** -126]);
        check('add', [sign * maxFinite, sign * 2 ** 103 * near, 0]);
        check('add', [sign * 2 ** -125 * near, -sign * 2 ** -126, 0]);
      }
    }
  });

  test('products within 2^−46 of where the smallest normal stops being tiny', () => {
    for (let i = 1; i < 256; i++) {
      for (const step of [-i, i]) {
        for (const distance of [2 ** -150, 2 ** -151, 2 ** -152]) {
          for (const sign of [1, -1]) {
            const scale = sign * distance * 2 ** 60;
            const [up, down] = [1 + step * 2 ** -23, 1 - step * 2 ** -23];
            check('fma', [scale * up, 2 ** -60 * down, -sign * 2 ** -126]);
            check('fma', [scale * up, 2 ** -60 * up, -sign * 2 ** -126]);
          }
        }
      }
    }
  });

  test('a − b is a + (−b), bit for bit', () => {
    const words = new Uint32Array(3);
    for (let i = 0; i < patternCount; i++) {
      float32Pattern(testSeed, i, words);
      const [a, b] = [float32(words[0]), float32(words[1])];
      const options = { rounding: modes[(i >> 3) & 3], flushToZero: (i & 32) !== 0 };
      const got = [subtractFloat32(a, b, options), subtractFloat32(a, b)];
      const wanted = [addFloat32(a, -b, options), addFloat32(a, -b)];
      if (!got.every((value, k) => Object.is(value, wanted[k]))) {
        fail('subtract', [a, b, 0], JSON.stringify(options), got[0], wanted[0]);
      }
    }
  });
});

describe('IEEE 754 special cases', () => {
  test.each(modes)('signed zeros, %s', (rounding) => {
    const cancelled = rounding === 'down' ? -0 : 0;
    for (const flushToZero of [false, true]) {
      const options = { rounding, flushToZero };
      expect(addFloat32(1.5, -1.5, options)).toBe(cancelled);
      expect(addFloat32(0, -0, options)).toBe(cancelled);
      expect(addFloat32(0, 0, options)).toBe(0);
      expect(addFloat32(-0, -0, options)).toBe(-0);
      expect(subtractFloat32(1.5, 1.5, options)).toBe(cancelled);
      expect(multiplyFloat32(-1, 0, options)).toBe(-0);
      expect(multiplyFloat32(-1, -0, options)).toBe(0);
      expect(fusedMultiplyAddFloat32(2, 3, -6, options)).toBe(cancelled);
      expect(fusedMultiplyAddFloat32(-0, 3, -0, options)).toBe(-0);
      expect(fusedMultiplyAddFloat32(-0, 3, 0, options)).toBe(cancelled);
    }
  });

  test.each(modes)('infinities and NaN, %s', (rounding) => {
    const options = { rounding };
    expect(addFloat32(Infinity, -Infinity, options)).toBeNaN();
    expect(addFloat32(-Infinity, 1, options)).toBe(-Infinity);
    expect(multiplyFloat32(0, -Infinity, options)).toBeNaN();
    expect(multiplyFloat32(-2, Infinity, options)).toBe(-Infinity);
    expect(fusedMultiplyAddFloat32(0, Infinity, NaN, options)).toBeNaN();
    expect(fusedMultiplyAddFloat32(2, Infinity, -Infinity, options)).toBeNaN();
    expect(fusedMultiplyAddFloat32(maxFinite, maxFinite, -Infinity, options)).toBe(-Infinity);
  });

  test('overflow goes where the mode sends it', () => {
    const overflow = (rounding: RoundingMode, sign: number): number =>
      multiplyFloat32(sign * maxFinite, 2, { rounding });
    expect(modes.map((mode) => overflow(mode, 1))).toEqual([
      Infinity,
      maxFinite,
      maxFinite,
      Infinity,
    ]);
    expect(modes.map((mode) => overflow(mode, -1))).toEqual([
      -Infinity,
      -maxFinite,
      -Infinity,
      -maxFinite,
    ]);
  });

  test('an inexact fp64 sum that lies on the overflow midpoint, or far above it', () => {
    const almostHalf = [2 ** 52 * (1 - 2 ** -23), 2 ** 51 * (1 + 2 ** -23)] as const;
    expect(fusedMultiplyAddFloat32(...almostHalf, maxFinite)).toBe(maxFinite);
    expect(fusedMultiplyAddFloat32(2 ** 65, 2 ** 65, -1)).toBe(Infinity);
    expect(fusedMultiplyAddFloat32(2 ** 65, -(2 ** 65), 1)).toBe(-Infinity);
  });

  test('add.rm of −1e-10 and 12582912 is the integer below', () => {
    const options = { rounding: 'down', flushToZero: true } as const;
    expect(addFloat32(Math.fround(-1e-10), 12582912, options)).toBe(12582911);
  });

  test('an unknown rounding mode is refused', () => {
    const options = { rounding: 'nearest' as RoundingMode };
    expect(() => addFloat32(1, 2 ** -30, options)).toThrow(RequestError);
    expect(() => multiplyFloat32(1, 3, options)).toThrow(/no rounding mode 'nearest'/);
    expect(() => roundSumToFloat32(1, 2 ** -60, options.rounding)).toThrow(RequestError);
  });
});
