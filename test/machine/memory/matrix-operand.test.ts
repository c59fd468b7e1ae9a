import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  checkOperand,
  createSharedMemory,
  descriptorChunks,
  gatherOperand,
  swizzles,
} from '../../../src/machine/memory/index.js';
import type { MatrixDescriptor, SwizzleMode } from '../../../src/machine/memory/index.js';
import { RequestError } from '../../../src/request-error.js';
import { wordSource } from '../../hardware/tensor-core/random-patterns.js';
import { canonicalAddress, denseDescriptor } from './canonical-layout.js';
import { firstDifference } from './first-difference.js';

const modes = Object.keys(swizzles) as SwizzleMode[];
const cases = modes.flatMap((swizzle) =>
  (['k', 'mn'] as const).flatMap((major) =>
    ([1, 2] as const).map((bytesPerElement) => ({ swizzle, major, bytesPerElement })),
  ),
);

const shared = createSharedMemory();
const word = wordSource(1);
shared.store.words.forEach((_, i) => (shared.store.words[i] = word()));

describe.each(cases)('operands: $swizzle swizzled, $major major, $bytesPerElement bytes', (c) => {
  const { swizzle, major, bytesPerElement } = c;
  const k = 32 / bytesPerElement;

  it('are gathered from where the canonical layouts put them', () => {
    const units = (most: number): fc.Arbitrary<number> => fc.nat(most).map((unit) => 16 * unit);
    const rowCounts = fc.constantFrom(8, 16, 24, 64, 128);
    const inSpan = fc.nat(swizzles[swizzle].spanBytes / 32 - (swizzle === 'none' ? 0.5 : 1));
    fc.assert(
      fc.property(
        rowCounts,
        units(1000),
        units(200),
        units(200),
        inSpan,
        (rows, at, lbo, sbo, part) => {
          const { spanBytes } = swizzles[swizzle];
          const address = Math.floor(at / spanBytes) * spanBytes + Math.floor(part) * 32;
          const place = { address, leadingByteOffset: lbo, strideByteOffset: sbo };
          const descriptor: MatrixDescriptor = { ...place, swizzle, major };
          const target = new { 1: Uint8Array, 2: Uint16Array }[bytesPerElement](rows * k);
          gatherOperand(shared, descriptor, { rows, k, bytesPerElement }, target);
          const source = bytesPerElement === 2 ? shared.halves : shared.store.bytes;
          const expected = target.map((_, i) => {
            const byte = canonicalAddress(descriptor, bytesPerElement, Math.floor(i / k), i % k);
            return source[byte / bytesPerElement];
          });
          expect(firstDifference(target, expected)).toBe(null);
        },
      ),
      { numRuns: 40 },
    );
  });

  it('lie in distinct chunks when packed densely, which hold nothing else', () => {
    const rows = 128;
    const descriptor = denseDescriptor(swizzle, major, 4096, k, bytesPerElement);
    const chunks = descriptorChunks(descriptor, { rows, k, bytesPerElement });
    expect(chunks.length).toBe((rows * k * bytesPerElement) / 16);
    expect(new Set(chunks).size).toBe(chunks.length);
    expect(chunks.every((chunk) => chunk % 16 === 0 && chunk >= 4096)).toBe(true);
  });

  it('are checked against the end of shared memory exactly', () => {
    const rowCounts = fc.constantFrom(4, 8, 12, 24, 72, 136, 256);
    const offsets = fc.constantFrom(0, 16, 256, 1024, 1040, 8192);
    fc.assert(
      fc.property(rowCounts, offsets, offsets, (rows, lbo, sbo) => {
        const { spanBytes } = swizzles[swizzle];
        const place = { address: 0, leadingByteOffset: lbo, strideByteOffset: sbo };
        const descriptor: MatrixDescriptor = { ...place, swizzle, major };
        const extent = { rows, k, bytesPerElement };
        const check = (address: number): string | null =>
          checkOperand(shared, { ...descriptor, address }, extent)?.kind ?? null;
        const end = Math.max(...descriptorChunks(descriptor, extent)) + 16;
        const last = shared.limitBytes - Math.ceil(end / spanBytes) * spanBytes;
        if (last >= 0) expect(check(last)).toBe(null);
        expect(check(Math.max(last + spanBytes, 0))).toBe('shared-overflow');
      }),
    );
  });
});

describe('operands', () => {
  const descriptor = denseDescriptor('128B', 'k', 0, 16, 2);
  const extent = { rows: 64, k: 16, bytesPerElement: 2 } as const;

  it('advance along K inside a span of 128 bytes by the address alone', () => {
    // Four instructions, each 32 bytes further, read the whole 64 elements of each row.
    const all = [0, 32, 64, 96].flatMap((step) => [
      ...descriptorChunks({ ...descriptor, address: step }, extent),
    ]);
    expect(new Set(all).size).toBe((64 * 128) / 16);
    expect(Math.max(...all)).toBe(64 * 128 - 16);
  });

  it('are not gathered into arrays of another size, nor from beyond the end', () => {
    expect(() => gatherOperand(shared, descriptor, extent, new Uint16Array(100))).toThrow(
      RequestError,
    );
    expect(() => gatherOperand(shared, descriptor, extent, new Uint8Array(1024))).toThrow(
      RequestError,
    );
    const beyond = { ...descriptor, address: shared.limitBytes - 1024 };
    expect(() => gatherOperand(shared, beyond, extent, new Uint16Array(1024))).toThrow(
      'which has 232448',
    );
  });
});
