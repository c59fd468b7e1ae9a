import { describe, expect, it } from 'vitest';
import type { RegimeName } from '../../../properties/index.js';
import { regimes } from '../../../properties/problems/regimes/index.js';
import type { ProblemFeatures } from '../../../src/problem/index.js';
import { sequencesOf, tensor } from '../../setup/problems.js';
import { upTo, type Numbers, plainOf, holds, held } from './plain-numbers.js';

describe('a regime of lengths and features is told, to its limit, by', () => {
  const ofKeys = (count: number, features?: ProblemFeatures): Numbers => ({
    k: upTo(count).map(() => 1),
    ...(features === undefined ? {} : { features }),
  });
  const counts = (name: RegimeName) => upTo(13).filter((count) => holds(name, ofKeys(count)));

  it('half-filled-tiles, one-key and one-query: how many there are', () => {
    expect(counts('half-filled-tiles')).toEqual([2, 6, 10]);
    expect(
      regimes['half-filled-tiles'].holds(plainOf(ofKeys(3)), { blockKeys: 5, threshold: 8 }),
    ).toBe(true);
    expect(
      regimes['half-filled-tiles'].holds(plainOf(ofKeys(4)), { blockKeys: 1, threshold: 8 }),
    ).toBe(true);
    expect(counts('one-key')).toEqual([1]);
    expect(upTo(4).filter((count) => holds('one-query', { q: upTo(count) }))).toEqual([1]);
  });

  it('empty-tiles: a whole block of keys that no row of the mask shows, of more keys than a block', () => {
    const mask = (rows: readonly string[]): Numbers => ({
      ...ofKeys(rows[0].length, {
        mask: {
          shape: [rows.length, rows[0].length],
          data: Uint8Array.from([...rows.join('')].map(Number)),
        },
      }),
      q: rows.map(() => 1),
    });
    expect(
      held(
        'empty-tiles',
        mask(['00001', '00001']),
        mask(['11110000', '01000000']),
        mask(['00001', '00011']),
        mask(['01110']),
        mask(['0001', '0001']),
        mask(['11110000', '00000001']),
        mask(['00000000']),
      ),
    ).toEqual([true, true, false, false, false, false, true]);
    expect(holds('empty-tiles', mask(['00001', '00101']))).toBe(false);
    expect(
      holds('empty-tiles', ofKeys(8, { mask: { shape: [1, 1], data: Uint8Array.of(0) } })),
    ).toBe(false);
    expect(holds('empty-tiles', ofKeys(8))).toBe(false);
  });

  it('documents-beside-tiles: another document one key before or behind the edge of a block', () => {
    const at = (edge: number) => {
      const data = Int32Array.from(upTo(12), (key) => +(key >= edge));
      const keys = { shape: [12], data };
      return holds(
        'documents-beside-tiles',
        ofKeys(12, { segments: { queries: { shape: [1], data: Int32Array.of(0) }, keys } }),
      );
    };
    expect(upTo(13).filter(at)).toEqual([1, 3, 5, 7, 9, 11]);
    expect(holds('documents-beside-tiles', ofKeys(12))).toBe(false);
  });

  it('large-bias, far-alibi and extreme-sinks: the largest there is, of either sign', () => {
    const bias = (x: number) =>
      ofKeys(3, { bias: tensor('fp32', [1, 3], (i) => [0, x, -Infinity][i]) });
    expect(held('large-bias', bias(1000), bias(-1000), bias(999), ofKeys(3))).toEqual([
      true,
      true,
      false,
      false,
    ]);
    const alibi = (slope: number) => ofKeys(11, { alibiSlopes: tensor('fp32', [1], () => slope) });
    expect(held('far-alibi', alibi(10), alibi(9.9), ofKeys(11))).toEqual([true, false, false]);
    const sink = (x: number) =>
      ofKeys(2, { sink: { logits: tensor('fp32', [2], (i) => [x, -Infinity][i]), inLse: true } });
    expect(held('extreme-sinks', sink(60), sink(-60), sink(59), ofKeys(2))).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  it('one-huge-sequence and empty-sequences: what the sequences have', () => {
    const packed = (...all: (readonly [number, number])[]): Numbers => {
      const sequences = sequencesOf(all);
      const keys = all.reduce((sum, [, count]) => sum + count, 0);
      return {
        ...ofKeys(keys, { sequences }),
        q: upTo(all.reduce((sum, [count]) => sum + count, 0)),
      };
    };
    expect(
      held(
        'one-huge-sequence',
        packed([1, 8], [1, 2]),
        packed([1, 2], [1, 8]),
        packed([1, 8], [1, 3]),
        packed([1, 8]),
        ofKeys(3),
      ),
    ).toEqual([true, true, false, false, false]);
    expect(
      held(
        'empty-sequences',
        packed([1, 2], [0, 2]),
        packed([1, 0], [1, 2]),
        packed([1, 2], [2, 1]),
        packed([0, 1], [0, 2]),
        packed([2, 1], [0, 0]),
        ofKeys(2),
      ),
    ).toEqual([true, true, false, false, true, false]);
  });
});
