import { describe, expect, it } from 'vitest';
import {
  checkMatrixDescriptor,
  decodeMatrixDescriptor,
} from '../../../src/machine/memory/index.js';
import type { MatrixDescriptor } from '../../../src/machine/memory/index.js';

const plain: MatrixDescriptor = {
  address: 0,
  leadingByteOffset: 0,
  strideByteOffset: 1024,
  swizzle: '128B',
  major: 'k',
};

describe('shared memory descriptors', () => {
  it('have the words of the PTX ISA: each field in its bits', () => {
    const decoded = (word: bigint) => decodeMatrixDescriptor(word, 'k');
    // The constant of kernels with 128-byte swizzling and K major: SBO 64 · 16, version 1, mode 2.
    expect(decoded(0x4000_4040_0000_0000n)).toEqual({ ok: true, descriptor: plain });
    const placed = { ...plain, address: 0x1230, leadingByteOffset: 0x4560 };
    expect(decoded(0x4000_4040_0456_0123n)).toEqual({ ok: true, descriptor: placed });
    const most = 2 ** 18 - 16;
    const full = { ...plain, address: most, leadingByteOffset: most, strideByteOffset: most };
    expect(decoded(0x4000_7fff_3fff_3fffn)).toEqual({ ok: true, descriptor: full });
    const codes = { none: 0n, '32B': 6n, '64B': 4n, '128B': 2n } as const;
    for (const [swizzle, code] of Object.entries(codes))
      expect(decoded((code << 61n) | 0x4040_0000_0000n)).toEqual({
        ok: true,
        descriptor: { ...plain, swizzle },
      });
    expect(decodeMatrixDescriptor(0x4000_4040_0000_0000n, 'mn')).toEqual({
      ok: true,
      descriptor: { ...plain, major: 'mn' },
    });
  });

  it('refuse bytes that do not fit', () => {
    for (const address of [8, -16, 2 ** 18, 16.5]) {
      expect(checkMatrixDescriptor({ ...plain, address })?.kind).toBe('misaligned');
    }
  });

  it('take a base offset where nothing is swizzled, in which it has no meaning', () => {
    const word = 0x4040_0000_0000n;
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
