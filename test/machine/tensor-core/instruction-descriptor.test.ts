import { describe, expect, it } from 'vitest';
import {
  decodeInstructionDescriptor,
  type InstructionDescriptor,
} from '../../../src/machine/isa/tensor-core/index.js';

const plain: InstructionDescriptor = {
  kind: 'f16',
  accumulator: 'fp32',
  saturates: false,
  a: 'bf16',
  b: 'bf16',
  negateA: false,
  negateB: false,
  aMajor: 'k',
  bMajor: 'k',
  m: 128,
  n: 128,
};

describe('instruction descriptors', () => {
  it('have the words of the PTX ISA: each field in its bits', () => {
    // bf16 into fp32, 128 × 128: D at bit 4, A at 7, B at 10, 128 / 8 at 17, 128 / 16 at 24.
    const word = 0x0820_0490;
    expect(decodeInstructionDescriptor(word, 'f16')).toEqual(plain);
    const fields: readonly (readonly [number, Partial<InstructionDescriptor>])[] = [
      [1 << 3, { saturates: true }],
      [1 << 4, { accumulator: 'fp16' }],
      [1 << 7, { a: 'fp16' }],
      [1 << 10, { b: 'fp16' }],
      [1 << 13, { negateA: true }],
      [1 << 14, { negateB: true }],
      [1 << 15, { aMajor: 'mn' }],
      [1 << 16, { bMajor: 'mn' }],
    ];
    for (const [bit, change] of fields)
      expect(decodeInstructionDescriptor(word ^ bit, 'f16')).toEqual({ ...plain, ...change });
    // As a signed 32-bit integer, and with the bits of .ws, it says the same.
    expect(decodeInstructionDescriptor(word | 0xc0000000, 'f16')).toEqual(plain);
  });

  it('have M in units of 16 and N in units of 8', () => {
    for (const m of [16, 64, 128, 256, 496])
      for (const n of [8, 24, 128, 256, 504]) {
        const word = 0x490 + (n / 8) * 2 ** 17 + (m / 16) * 2 ** 24;
        expect(decodeInstructionDescriptor(word, 'f16')).toEqual({ ...plain, m, n });
      }
  });

  it.each([
    ['f16', ['fp16', 'bf16'], 0],
    // Code 2, as Triton writes it.
    ['tf32', ['tf32'], 2],
    ['f8f6f4', ['e4m3', 'e5m2', null, 'e2m3', 'e3m2', 'e2m1'], 0],
    ['i8', ['u8', 's8'], 0],
  ] as const)('of kind::%s have its codes of operands', (kind, names, first) => {
    const accumulator = kind === 'i8' ? 's32' : 'fp32';
    const ofD = kind === 'i8' ? 2 << 4 : 1 << 4;
    names.forEach((a, i) =>
      names.forEach((b, j) => {
        if (a === null || b === null) return;
        const word = 0x0820_0000 + ofD + ((first + i) << 7) + ((first + j) << 10);
        expect(decodeInstructionDescriptor(word, kind)).toEqual({
          ...plain,
          kind,
          accumulator,
          a,
          b,
        });
      }),
    );
  });

  it('refuse words of other instructions', () => {
    expect(() => decodeInstructionDescriptor(0x0820_0494, 'f16')).toThrow('sparse');
    expect(() => decodeInstructionDescriptor(0x0820_0490 + (1 << 8), 'f16')).toThrow(
      'code 3 for A',
    );
    expect(() => decodeInstructionDescriptor(0x0820_0490 + (1 << 4), 'f16')).toThrow(
      'code 2 for D',
    );
    expect(() => decodeInstructionDescriptor(0x0820_0490 + (1 << 10), 'f8f6f4')).toThrow(
      'code 2 for B',
    );
  });
});
