import { describe, expect, it } from 'vitest';
import { smallestNormal, formats, type FormatName } from '../../../src/formats/index.js';
import { upTo, type Numbers, holds, held } from './plain-numbers.js';

describe('a regime of numbers is told, to its limit, by', () => {
  it('large: largest |q| times largest |k| of 4', () => {
    expect(
      held('large', { q: [1, -2], k: [2, 1] }, { q: [1, 2], k: [-2, 1] }, { q: [2], k: [1.9] }),
    ).toEqual([true, true, false]);
  });

  it('positive-values and ones: every element of V', () => {
    expect(held('positive-values', { v: [0, 1], k: [1, 1] }, { v: [1, -0.1], k: [1, 1] })).toEqual([
      true,
      false,
    ]);
    expect(held('ones', { v: [1, 1], k: [1, 1] }, { v: [1, 2], k: [1, 1] })).toEqual([true, false]);
  });

  it('zeros: one tensor of zeros, whichever', () => {
    expect(
      held(
        'zeros',
        { q: [0, -0] },
        { k: [0, 0] },
        { v: [0] },
        { q: [0, 1], k: [1, 0], v: [1, 0] },
        { q: [1] },
      ),
    ).toEqual([true, true, true, false, false]);
  });

  it('tiny: |q| and |k| up to 2, |v| up to 16 smallest normal numbers', () => {
    const least = smallestNormal(formats.fp32);
    const of = (q: number, k: number, v: number): Numbers => ({ q: [0, q], k: [0, k], v: [0, v] });
    expect(
      held(
        'tiny',
        of(2, -2, 16 * least),
        of(2.1, 2, 0),
        of(2, 2.1, 0),
        of(2, 2, 17 * least),
        of(-2.1, 2, 0),
      ),
    ).toEqual([true, false, false, false, false]);
  });

  it('subnormal: V below the smallest normal number, and not all 0', () => {
    for (const format of ['fp16', 'bf16', 'e5m2'] as const) {
      const least = smallestNormal(formats[format]);
      expect(
        held(
          'subnormal',
          { v: [0, -least / 2], k: [1, 1], format },
          { v: [0, least], k: [1, 1], format },
          { v: [0, 0], k: [1, 1], format },
        ),
      ).toEqual([true, false, false]);
    }
  });

  it('outlier-channel: one channel of Q or K four times every other', () => {
    const dim = 3;
    const other = [1, 1, -1];
    expect(
      held(
        'outlier-channel',
        { dim, q: [1, -8, 2, 1, 1, 0], k: other },
        { dim, q: other, k: [1, 8, 2] },
        { dim, q: [1, 8, 2.1], k: other },
        { dim, q: [0, 0, 0], k: other },
      ),
    ).toEqual([true, true, false, false]);
    expect(
      held(
        'outlier-channel',
        { dim, q: [8, 1, 1, 1, 1, -2], k: other },
        { dim, q: [8, 1, 1, 1, 2.1, 1], k: other },
      ),
    ).toEqual([true, false]);
    expect(held('outlier-channel', { dim: 1, q: [1], k: [0] }, { dim: 1, q: [0], k: [0] })).toEqual(
      [true, false],
    );
  });

  it('constant-keys: the keys of each head alike', () => {
    const [dim, kvHeads] = [2, 2];
    expect(
      held(
        'constant-keys',
        { dim, kvHeads, q: [1, 1, 1, 1], k: [1, 2, 1, 2, 3, 4, 3, 4] },
        { dim, kvHeads, q: [1, 1, 1, 1], k: [1, 2, 1, 2, 3, 4, 3, 5] },
        { dim, kvHeads, q: [1, 1, 1, 1], k: [1, 2, 2, 2, 3, 4, 3, 4] },
      ),
    ).toEqual([true, false, false]);
    expect(holds('constant-keys', { k: [5] })).toBe(true);
  });

  it('cancelling-values: equal keys in pairs, whose values cancel to two ulps', () => {
    const format = 'bf16';
    const ulps = 2 ** (2 - formats.bf16.precision);
    const of = (k: readonly number[], v: readonly number[]): Numbers => ({ k, v, format });
    expect(
      held(
        'cancelling-values',
        of([1, 1, 2, 2], [3, -3, 4, -4 * (1 + ulps)]),
        of([1, 1, 2, 2], [3, -3, 4, -4 * (1 + 1.1 * ulps)]),
        of([1, 1, 2, 3], [3, -3, 4, -4]),
        of([1, 2, 2, 2], [3, -3, 4, -4]),
        of([1, 1, 9], [3, -3, 7]),
        of([1, 1], [0, 0]),
        of([1], [3]),
        of([1, 1], [3, 3]),
      ),
    ).toEqual([true, false, false, false, true, false, false, false]);
    const least = 2 ** -133;
    expect(
      held('cancelling-values', of([1, 1], [least, -2 * least]), of([1, 1], [least, -3 * least])),
    ).toEqual([true, false]);
  });

  it('level-values: columns of each head that differ by an eighth of their size, by more in few bits', () => {
    const of = (v: readonly number[], format: FormatName = 'fp32', kvHeads = 1): Numbers => ({
      v,
      format,
      kvHeads,
      q: upTo(kvHeads).map(() => 1),
      k: v.map(() => 1),
    });
    expect(
      held(
        'level-values',
        of([8, 7]),
        of([8, 6.9]),
        of([-8, -7]),
        of([-7, -8.2]),
        of([8, 7, 1, 1], 'fp32', 2),
        of([8, 7, 1, 2], 'fp32', 2),
      ),
    ).toEqual([true, false, true, false, true, false]);
    // e5m2 has 3 bits: half of the size.
    expect(held('level-values', of([8, 4], 'e5m2'), of([8, 3.9], 'e5m2'))).toEqual([true, false]);
    expect(holds('level-values', { vDim: 2, v: [8, 1, 7, 2], k: [1, 1] })).toBe(false);
  });
});
