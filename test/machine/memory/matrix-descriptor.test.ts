import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  checkMatrixDescriptor,
  decodeMatrixDescriptor,
  encodeMatrixDescriptor,
  swizzles,
} from '../../../src/machine/memory/index.js';
import type { MatrixDescriptor, SwizzleMode } from '../../../src/machine/memory/index.js';

const field = fc.nat(2 ** 14 - 1).map((units) => 16 * units);
const descriptors: fc.Arbitrary<MatrixDescriptor> = fc.record({
  address: field,
  leadingByteOffset: field,
  strideByteOffset: field,
  swizzle: fc.constantFrom(...(Object.keys(swizzles) as SwizzleMode[])),
  major: fc.constantFrom('k' as const, 'mn' as const),
});

const plain: MatrixDescriptor = {
  address: 0,
  leadingByteOffset: 0,
  strideByteOffset: 1024,
  swizzle: '128B',
  major: 'k',
};

describe('shared memory descriptors', () => {
  it('come back from their words', () => {
    fc.assert(
      fc.property(descriptors, (descriptor) => {
        const word = encodeMatrixDescriptor(descriptor);
        expect(word >= 0n && word < 1n << 64n).toBe(true);
        expect(decodeMatrixDescriptor(word, descriptor.major)).toEqual({ ok: true, descriptor });
      }),
    );
  });

  it('have the words of the PTX ISA: each field in its bits', () => {
    // The constant of kernels with 128-byte swizzling and K major: SBO 64 · 16, version 1, mode 2.
    expect(encodeMatrixDescriptor(plain)).toBe(0x4000_4040_0000_0000n);
    expect(encodeMatrixDescriptor({ ...plain, address: 0x1230, leadingByteOffset: 0x4560 })).toBe(
      0x4000_4040_0456_0123n,
    );
    const codes = { none: 0n, '32B': 6n, '64B': 4n, '128B': 2n } as const;
    for (const [swizzle, code] of Object.entries(codes))
      expect(encodeMatrixDescriptor({ ...plain, swizzle: swizzle as SwizzleMode }) >> 61n).toBe(
        code,
      );
  });

  it('refuse bytes that do not fit', () => {
    for (const address of [8, -16, 2 ** 18, 16.5]) {
      expect(checkMatrixDescriptor({ ...plain, address })?.kind).toBe('misaligned');
      expect(() => encodeMatrixDescriptor({ ...plain, address })).toThrow('a multiple of 16');
    }
  });

  it('take a base offset where nothing is swizzled, in which it has no meaning', () => {
    const word = encodeMatrixDescriptor({ ...plain, swizzle: 'none' });
    const withOffset = decodeMatrixDescriptor(word | (4n << 49n), 'k');
    expect(withOffset).toEqual(decodeMatrixDescriptor(word, 'k'));
    expect(withOffset.ok).toBe(true);
  });

  it.each([
    ['no constant 1', 0x4000_0040_0000_0000n, '0 in bits 46 to 48'],
    ['a base offset', 0x4002_4040_0000_0000n, 'base offset'],
    ['an absolute leading address', 0x4010_4040_0000_0000n, 'absolute leading address'],
    ['atoms of 32 bytes', 0x2000_4040_0000_0000n, 'atoms of 32'],
    ['a mode that does not exist', 0x6000_4040_0000_0000n, 'swizzling mode 3'],
  ])('are a violation with %s', (_, word, message) => {
    expect(decodeMatrixDescriptor(word, 'k')).toMatchObject({
      ok: false,
      violation: { kind: 'instruction-shape', message: expect.stringContaining(message) as string },
    });
  });
});
