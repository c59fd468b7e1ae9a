import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { swizzleAddress, swizzles } from '../../../src/machine/memory/index.js';
import type { SwizzleMode } from '../../../src/machine/memory/index.js';
import { swizzleBitwise } from './canonical-layout.js';

const modes = Object.keys(swizzles) as SwizzleMode[];
const address = fc.nat(2 ** 18 - 1);

describe.each(modes)('swizzling %s', (mode) => {
  const { spanBytes, patternBytes } = swizzles[mode];

  it('is an involution, and the one that CuTe calls Swizzle<B, 4, 3>', () => {
    fc.assert(
      fc.property(address, (a) => {
        expect(swizzleAddress(mode, swizzleAddress(mode, a))).toBe(a);
        expect(swizzleAddress(mode, a)).toBe(swizzleBitwise(mode, a));
      }),
    );
  });

  it('permutes the chunks of every span and leaves bytes within a chunk in order', () => {
    for (let span = 0; span < 4 * patternBytes; span += spanBytes) {
      const seen = new Set<number>();
      for (let byte = span; byte < span + spanBytes; byte++) {
        const to = swizzleAddress(mode, byte);
        expect(Math.floor(to / spanBytes)).toBe(span / spanBytes);
        expect(to % 16).toBe(byte % 16);
        seen.add(to);
      }
      expect(seen.size).toBe(spanBytes);
    }
  });

  it('repeats after a pattern, and not before unless it is the identity', () => {
    fc.assert(
      fc.property(address, (a) => {
        expect(swizzleAddress(mode, a + patternBytes)).toBe(swizzleAddress(mode, a) + patternBytes);
      }),
    );
    if (mode !== 'none') expect(swizzleAddress(mode, patternBytes / 2)).not.toBe(patternBytes / 2);
  });

  it('spreads a column of chunks over as many places as its span has', () => {
    const lines = Array.from({ length: 8 }, (_, line) => 128 * line);
    const places = new Set(lines.map((line) => swizzleAddress(mode, line) % 128));
    expect(places.size).toBe(spanBytes / 16);
  });
});
