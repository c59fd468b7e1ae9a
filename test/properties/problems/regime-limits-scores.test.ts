import { describe, expect, it } from 'vitest';
import { upTo, holds, held } from './plain-numbers.js';

describe('a regime of scores is told, to its limit, by', () => {
  it.each([
    ['deeply-negative', -1000],
    ['negative-scores', -40],
  ] as const)('%s: every score of every row at or below', (name, limit) => {
    const [at, above] = [limit, limit + 0.125];
    expect(
      held(
        name,
        { k: [at, 3 * at] },
        { k: [above, at] },
        { k: [at, above] },
        { k: [2 * at, 4 * at], q: [1, 0.5] },
        { k: [2 * above, 4 * at], q: [1, 0.5] },
      ),
    ).toEqual([true, false, false, true, false]);
    // In nats, but raw scores are below zero as well.
    expect(
      held(name, { k: [2 * at], scale: 0.5 }, { k: [-at], scale: -1 }, { k: [2 * at], scale: 0.4 }),
    ).toEqual([true, false, false]);
    expect(holds(name, { q: [], k: [at] })).toBe(false);
  });

  it('sink: the first key 3 above the mean of the others in some row', () => {
    expect(
      held('sink', { k: [4, 0, 2] }, { k: [3.9, 0, 2] }, { k: [4, 0, 2], q: [0, 1] }, { k: [4] }),
    ).toEqual([true, false, true, false]);
    expect(
      held('sink', { k: [8, 0, 4], scale: 0.5 }, { k: [-4, 0, -2], scale: -1 }, { k: [0, 4, 0] }),
    ).toEqual([true, true, false]);
  });

  it('ascending and descending: the last key 6 above or below the first in some row', () => {
    for (const [name, sign] of [
      ['ascending', 1],
      ['descending', -1],
    ] as const)
      expect(
        held(
          name,
          { k: [1, 0, 1 + 6 * sign] },
          { k: [1, 0, 1 + 5.9 * sign] },
          { k: [0, 6 * sign], q: [0, 1] },
          { k: [0, -6 * sign] },
          { k: [0, 12 * sign], scale: 0.5 },
        ),
      ).toEqual([true, false, true, false, true]);
  });

  it('repeated-maxima: two keys at the maximum in every row, V of one sign', () => {
    const v = [1, 2, 3];
    expect(
      held(
        'repeated-maxima',
        { k: [3, 1, 3], v },
        { k: [3, 1, 2], v },
        { k: [3, 3, 1], v, q: [1, -1] },
        { k: [3, 3, 1], v: [1, -1, 1] },
        { k: [3, 3, 1], v: [-1, -1, -0] },
      ),
    ).toEqual([true, false, false, false, true]);
  });

  it('one-hot: the largest score 104 above the next in every row', () => {
    expect(
      held(
        'one-hot',
        { k: [0, 104, -3] },
        { k: [0, 103.5, -3] },
        { k: [0, 208, -300], q: [1, 0.5] },
        { k: [0, 104, -300], q: [1, 0.5] },
        { k: [200] },
        { k: [-9, -113, -200] },
      ),
    ).toEqual([true, false, true, false, false, true]);
  });

  it('long-tail: 128 keys 4 to 9 below the maximum in every row', () => {
    const tail = (drop: number, count = 128, q = [1]) => ({
      k: [10, ...upTo(count).map(() => 10 - drop)],
      q,
    });
    expect(
      held(
        'long-tail',
        tail(4),
        tail(9),
        tail(3.9),
        tail(9.1),
        tail(5, 127),
        tail(8, 128, [1, 0.5]),
        tail(7, 128, [1, 0.5]),
      ),
    ).toEqual([true, true, false, false, false, true, false]);
  });

  it('integer-scores: whole raw scores up to 1024 at a scale of ln 2', () => {
    const scale = Math.LN2;
    expect(
      held(
        'integer-scores',
        { k: [1024, -1024, 0], scale },
        { k: [1025], scale },
        { k: [-1025], scale },
        { k: [0.5], scale },
        { k: [2, 4], q: [1, 0.5], scale },
        { k: [2, 3], q: [1, 0.5], scale },
        { k: [3], scale: 0.7 },
      ),
    ).toEqual([true, false, false, false, true, false, false]);
  });

  it('near-overflow: a raw score of 131008 or more, of either sign, below 2^100', () => {
    expect(
      held(
        'near-overflow',
        { k: [1, 131008] },
        { k: [1, 131007] },
        { k: [1, -131008] },
        { k: [1, 2], q: [1, 65504] },
        { k: [2 ** 99] },
        { k: [2 ** 100] },
      ),
    ).toEqual([true, false, true, true, true, false]);
  });

  it('one-deep-query: one query whose every score is −96 or less', () => {
    expect(
      held(
        'one-deep-query',
        { k: [-96, -99] },
        { k: [-96, -95] },
        { k: [-192], scale: 0.5 },
        { k: [-99], q: [1, 1] },
      ),
    ).toEqual([true, false, true, false]);
  });

  it('steps: growth of block maxima, within a millionth, from one block to the next', () => {
    const step = (growth: number) => ({ k: [0, -1, -9, -5, growth, -99], scale: Math.LN2 });
    for (const [name, side] of [
      ['steps-below', -1],
      ['steps-above', 1],
    ] as const) {
      const at = 8 + side / 16;
      expect(held(name, step(at), step(at + 2 ** -19), step(8), step(-at))).toEqual([
        true,
        false,
        false,
        true,
      ]);
    }
  });
});
