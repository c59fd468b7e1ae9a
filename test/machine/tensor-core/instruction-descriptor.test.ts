import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decodeInstructionDescriptor,
  encodeInstructionDescriptor,
  type InstructionDescriptor,
} from '../../../src/machine/isa/tensor-core/index.js';
import { RequestError } from '../../../src/request-error.js';

const formatsOf = {
  f16: ['fp16', 'bf16'],
  tf32: ['tf32'],
  f8f6f4: ['e4m3', 'e5m2', 'e2m3', 'e3m2', 'e2m1'],
  i8: ['u8', 's8'],
} as const;
const accumulatorsOf = {
  f16: ['fp16', 'fp32'],
  tf32: ['fp32'],
  f8f6f4: ['fp16', 'fp32'],
  i8: ['s32'],
} as const;
const major = fc.constantFrom('k' as const, 'mn' as const);
const descriptors: fc.Arbitrary<InstructionDescriptor> = fc
  .constantFrom('f16' as const, 'tf32' as const, 'f8f6f4' as const, 'i8' as const)
  .chain((kind) =>
    fc.record({
      kind: fc.constant(kind),
      accumulator: fc.constantFrom(...accumulatorsOf[kind]),
      saturates: fc.boolean(),
      a: fc.constantFrom(...formatsOf[kind]),
      b: fc.constantFrom(...formatsOf[kind]),
      negateA: fc.boolean(),
      negateB: fc.boolean(),
      aMajor: major,
      bMajor: major,
      m: fc.constantFrom(64, 128, 256),
      n: fc.integer({ min: 1, max: 32 }).map((units) => 8 * units),
    }),
  );

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
  it('come back from their words', () => {
    fc.assert(
      fc.property(descriptors, (descriptor) => {
        const word = encodeInstructionDescriptor(descriptor);
        expect(Number.isInteger(word) && word >= 0 && word < 2 ** 32).toBe(true);
        expect(decodeInstructionDescriptor(word, descriptor.kind)).toEqual(descriptor);
        // As a signed 32-bit integer, and with the bits of .ws, it says the same.
        expect(decodeInstructionDescriptor(word | 0xc0000000, descriptor.kind)).toEqual(descriptor);
      }),
    );
  });

  it('have the words of the PTX ISA: each field in its bits', () => {
    // bf16 into fp32, 128 × 128: D at bit 4, A at 7, B at 10, 128 / 8 at 17, 128 / 16 at 24.
    expect(encodeInstructionDescriptor(plain)).toBe(0x0820_0490);
    // Of tf32, code 2, as Triton writes it for N = 64.
    const tf32 = { ...plain, kind: 'tf32', a: 'tf32', b: 'tf32', n: 64 } as const;
    expect(encodeInstructionDescriptor(tf32)).toBe(0x0810_0910);
    const bits = (change: Partial<InstructionDescriptor>): number =>
      encodeInstructionDescriptor({ ...plain, ...change }) ^ 0x0820_0490;
    expect(bits({ negateA: true })).toBe(1 << 13);
    expect(bits({ negateB: true })).toBe(1 << 14);
    expect(bits({ aMajor: 'mn' })).toBe(1 << 15);
    expect(bits({ bMajor: 'mn' })).toBe(1 << 16);
    expect(bits({ accumulator: 'fp16' })).toBe(1 << 4);
    expect(bits({ saturates: true })).toBe(1 << 3);
    expect(bits({ a: 'fp16' })).toBe(1 << 7);
    expect(bits({ b: 'fp16' })).toBe(1 << 10);
    const e3m2 = { ...plain, kind: 'f8f6f4', a: 'e3m2', b: 'e2m1' } as const;
    expect(encodeInstructionDescriptor(e3m2)).toBe(0x0820_0000 + (1 << 4) + (4 << 7) + (5 << 10));
  });

  it('of kind::i8 say their signs and s32', () => {
    const integer = { ...plain, kind: 'i8', accumulator: 's32', a: 'u8', b: 's8' } as const;
    expect(encodeInstructionDescriptor(integer)).toBe(0x0820_0000 + (2 << 4) + (1 << 10));
    expect(() => encodeInstructionDescriptor({ ...integer, accumulator: 'fp32' })).toThrow(
      'kind::i8 does not accumulate in fp32; take s32',
    );
  });

  it('refuse what they cannot say', () => {
    const encode = (change: Partial<InstructionDescriptor>) => () =>
      encodeInstructionDescriptor({ ...plain, ...change });
    expect(encode({ a: 'e4m3' })).toThrow(
      'kind::f16 has no operands in e4m3; take one of fp16, bf16',
    );
    expect(encode({ n: 12 })).toThrow('a multiple of 8 up to 504');
    expect(encode({ m: 512 })).toThrow('a multiple of 16 up to 496');
    expect(encode({ m: 0 })).toThrow(RequestError);
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
