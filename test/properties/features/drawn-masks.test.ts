import { describe, expect, it } from 'vitest';
import {
  booleanTensor,
  drawBlockMask,
  drawMask,
  drawSegments,
  drawSequences,
} from '../../../properties/problems/features/draw-masks.js';
import { regimes } from '../../../properties/problems/regimes/index.js';
import type { RegimeName } from '../../../properties/index.js';
import { randomValues } from '../../../properties/problems/values.js';
import { decodeTensor, formats } from '../../../src/formats/index.js';
import type { ProblemFeatures } from '../../../src/problem/index.js';
import { expectShare, seeds, upTo } from './shares.js';

const sizes = { batch: 2, kvHeads: 2, groupSize: 2, queries: 10, keys: 24, qkDim: 3, vDim: 2 };
const [batches, heads, queries, keys] = [2, 4, 10, 24];
const blockKeys = 4;

const request = (seed: number, changes: Partial<typeof sizes> = {}) => ({
  sizes: { ...sizes, ...changes },
  format: formats.bf16,
  tiling: { blockKeys },
  random: randomValues(seed),
  sequences: null,
});

describe('drawn masks', () => {
  it('are by density, causal, a chessboard, one tile or whole rows', () => {
    const kinds = seeds.map((seed) => {
      const { shape, data } = drawMask(request(seed));
      expect(data.includes(1)).toBe(true);
      const [b, h, q, k] = [1, 1, 1, 1, ...shape].slice(-4);
      if (q === 1 || k === 1) return null;
      const rows = upTo(b * h * q).map((row) => [...data.subarray(row * k, (row + 1) * k)]);
      const isAll = (test: (row: number, key: number) => boolean) =>
        rows.every((row, i) => row.every((x, key) => (x === 1) === test(i % q, key)));
      if (isAll((query, key) => key <= query + keys - queries)) return 'causal';
      if (isAll((query, key) => ((query >> 2) + (key >> 2)) % 2 === 0)) return 'chessboard';
      const tile = rows[0].indexOf(1) >> 2;
      if (isAll((_, key) => key >> 2 === tile)) return `tile`;
      // Rows of one head are as those of the others.
      if (rows.every((row, i) => new Set(row).size === 1 && row[0] === rows[i % q][0]))
        return 'rows';
      return 'density';
    });
    const known = kinds.filter((kind) => kind !== null);
    for (const kind of ['causal', 'chessboard', 'tile', 'rows', 'density'])
      expectShare(known, kind, 0.2);
    // Of random ones and of rows the share that is seen is one of four.
    const seen = seeds.flatMap((seed, at) => {
      const { data } = drawMask(request(seed));
      return kinds[at] === 'density' && data.length >= 200
        ? [data.filter((x) => x === 1).length / data.length]
        : [];
    });
    const nearest = seen.map((x) =>
      [0.02, 0.3, 0.7, 0.98].filter((share) => Math.abs(x - share) < 0.12),
    );
    expect(new Set(nearest.flat())).toEqual(new Set([0.02, 0.3, 0.7, 0.98]));
    expect(nearest.every((list) => list.length === 1)).toBe(true);
    expect([...booleanTensor([3], ({ key }) => key === 2).data]).toEqual([0, 0, 1]);
    expect([...booleanTensor([3], () => false).data]).toEqual([1, 0, 0]);
    expect([...booleanTensor([0], () => false).data]).toEqual([]);
  });

  it('of documents are cut at the diagonal, elsewhere, or in no order, shared or not', () => {
    const kinds = seeds.map((seed) => {
      const { queries: ofQueries, keys: ofKeys } = drawSegments(request(seed));
      const isShared = ofQueries.shape.length === 1;
      expect(ofQueries.shape).toEqual(isShared ? [queries] : [batches, queries]);
      expect(ofKeys.shape).toEqual(isShared ? [keys] : [batches, keys]);
      const [q, k] = [[...ofQueries.data.subarray(0, queries)], [...ofKeys.data.subarray(0, keys)]];
      const isSorted = (list: number[]) => list.every((x, i) => i === 0 || x >= list[i - 1]);
      expect(Math.max(...q, ...k)).toBeLessThanOrEqual(5);
      if (q.every((x, i) => x === k[i + keys - queries]) && isSorted(k))
        return [isShared, 'aligned'] as const;
      return [isShared, isSorted(q) && isSorted(k) ? 'cut' : 'any'] as const;
    });
    expectShare(
      kinds.map(([isShared]) => isShared),
      true,
      0.5,
    );
    // One document in five is one alone, aligned however it is cut.
    for (const [kind, share] of [
      ['aligned', 0.6],
      ['cut', 0.2],
      ['any', 0.2],
    ] as const)
      expectShare(
        kinds.map(([, one]) => one),
        kind,
        share,
      );
  });

  it('of blocks have sizes of their own, in either order, of batches and heads or one', () => {
    const all = seeds.map((seed) => drawBlockMask(request(seed)));
    for (const { counts, indices, blockQueries, blockKeys: width } of all) {
      const [rows, columns] = [Math.ceil(queries / blockQueries), Math.ceil(keys / width)];
      expect([counts.shape[2], indices.shape[3]]).toEqual([rows, columns]);
      expect(counts.data).toHaveLength(counts.shape.reduce((a, b) => a * b, 1));
      const areListed = Array.from(counts.data, (count, at) => {
        const list = [...indices.data.subarray(at * columns, at * columns + count)];
        const isUp = list.every((x, i) => i === 0 || x > list[i - 1]);
        const isDown = list.every((x, i) => i === 0 || x < list[i - 1]);
        return (isUp || isDown) && list.every((x) => x >= 0 && x < columns);
      });
      expect(areListed.every(Boolean)).toBe(true);
    }
    for (const size of [4, 1, 16, 64, 128])
      expectShare(
        all.map((one) => one.blockQueries),
        size,
        0.2,
      );
    for (const size of [4, 1, 16, 64, 128])
      expectShare(
        all.map((one) => one.blockKeys),
        size,
        0.2,
      );
    expectShare(
      all.map(({ counts }) => counts.shape[0]),
      batches,
      0.5,
    );
    expectShare(
      all.map(({ counts }) => counts.shape[1]),
      heads,
      0.5,
    );
    const fine = all.filter((one) => one.blockKeys === 1);
    const filled = fine.map(
      ({ counts }) => counts.data.reduce((sum, x) => sum + x, 0) / counts.data.length / keys,
    );
    for (const share of [0.2, 0.5, 0.9])
      expectShare(
        filled.map((x) => Math.abs(x - share) < 0.16),
        true,
        1 / 3,
      );
    const long = fine
      .filter(({ counts }) => counts.data[0] > 2)
      .map(({ indices: { data } }) => data[0] > data[1]);
    expect(long.filter(Boolean).length / long.length).toBeGreaterThan(0.25);
    expect(long.filter(Boolean).length / long.length).toBeLessThan(0.75);
  });

  it('of sequences are one to five, with ends alike where lengths are', () => {
    const of = (changes: Partial<typeof sizes>) =>
      seeds.map((seed) => drawSequences(request(seed, changes)));
    const all = of({});
    for (const sequences of all) {
      expect(sequences.reduce((sum, one) => sum + one.keys, 0)).toBe(keys);
      expect(sequences.reduce((sum, one) => sum + one.queries, 0)).toBe(queries);
      sequences.forEach(({ firstKey, firstQuery }, i) => {
        const before = sequences.slice(0, i);
        expect([firstKey, firstQuery]).toEqual([
          before.reduce((sum, one) => sum + one.keys, 0),
          before.reduce((sum, one) => sum + one.queries, 0),
        ]);
      });
    }
    for (const count of [1, 2, 3, 4, 5])
      expectShare(
        all.map((one) => one.length),
        count,
        0.2,
      );
    const square = of({ queries: 24 }).filter((one) => one.length > 2);
    expectShare(
      square.map((one) => one.every((sequence) => sequence.keys === sequence.queries)),
      true,
      0.75,
    );
  });
});

describe('features of regimes', () => {
  const of = (name: RegimeName, changes: Partial<typeof sizes> = {}): ProblemFeatures[] =>
    seeds.map((seed) => regimes[name].drawFeatures?.(request(seed, changes)) ?? expect.fail(name));

  it('empty-tiles: one block hidden from all, and a row altogether, or none', () => {
    const hidden = of('empty-tiles').map(({ mask }) => {
      const isSeen = (query: number, key: number) => mask!.data[query * keys + key] === 1;
      const blocks = upTo(6).filter((block) =>
        upTo(queries).every((query) => !isSeen(query, 4 * block)),
      );
      const rows = upTo(queries).filter((query) => upTo(keys).every((key) => !isSeen(query, key)));
      expect([blocks.length, rows.length <= 1]).toEqual([1, true]);
      const shown = upTo(queries * keys).filter((at) =>
        isSeen(Math.floor(at / keys), at % keys),
      ).length;
      expect(shown).toBe((queries - rows.length) * (keys - 4));
      return { block: blocks[0], row: rows[0] };
    });
    expect(new Set(hidden.map(({ block }) => block))).toEqual(new Set(upTo(6)));
    expect(new Set(hidden.map(({ row }) => row))).toEqual(new Set([...upTo(queries), undefined]));
  });

  it('large-bias, far-alibi, extreme-sinks: beyond what they are told by', () => {
    const biases = of('large-bias').map(({ bias }) => [...decodeTensor(bias!)]);
    for (const [first, ...others] of biases) {
      const large = [first, ...others.filter((x) => Math.abs(x) > 100)];
      expect(
        large.every(
          (x) => Math.sign(x) === Math.sign(first) && Math.abs(x) >= 2000 && Math.abs(x) <= 9000,
        ),
      ).toBe(true);
      expect(others.filter((x) => Math.abs(x) <= 100).every((x) => Math.abs(x) < 6)).toBe(true);
    }
    expectShare(
      biases.flatMap(([, ...others]) => others.map((x) => Math.abs(x) > 100)),
      true,
      0.3,
    );
    const slopes = of('far-alibi').flatMap(({ alibiSlopes }) =>
      [...decodeTensor(alibiSlopes!)].map((x) => x * (keys - 1)),
    );
    expect([
      Math.min(...slopes) >= 149.9,
      Math.min(...slopes) < 155,
      Math.max(...slopes) <= 350.1,
      Math.max(...slopes) > 345,
    ]).toEqual([true, true, true, true]);
    const sinks = of('extreme-sinks');
    const logits = sinks.flatMap(({ sink }) => [...decodeTensor(sink!.logits)]);
    expect([
      Math.min(...logits.map(Math.abs)) >= 65.9,
      Math.max(...logits.map(Math.abs)) <= 126.1,
      Math.max(...logits) > 120,
      Math.min(...logits) < -120,
    ]).toEqual([true, true, true, true]);
    expectShare(
      sinks.map(({ sink }) => sink!.inLse),
      true,
      0.5,
    );
    expect(sinks[0].sink!.logits.shape).toEqual([heads]);
    expect(of('far-alibi')[0].alibiSlopes!.shape).toEqual([heads]);
  });

  it('documents-beside-tiles: two, cut a key before or behind an edge', () => {
    const cuts = of('documents-beside-tiles').map(({ segments }) => {
      const list = [...segments!.keys.data];
      const cut = list.indexOf(1);
      expect(list).toEqual(upTo(keys).map((key) => +(key >= cut)));
      expect([...segments!.queries.data]).toEqual(
        upTo(queries).map((query) => list[query + keys - queries]),
      );
      return cut;
    });
    expect(new Set(cuts)).toEqual(new Set([3, 5, 7, 9, 11, 13, 15, 17, 19, 21]));
  });

  it('one-huge-sequence and empty-sequences: most of the keys, and all sorts of emptiness', () => {
    const huge = of('one-huge-sequence').map(({ sequences }) => {
      expect(sequences!.map((one) => one.queries)).toEqual([0, queries, 0]);
      return sequences!.map((one) => one.keys);
    });
    expect(huge.every((list) => list[0] + list[1] + list[2] === keys)).toBe(true);
    const before = of('one-huge-sequence', { keys: 64 }).map(({ sequences }) =>
      sequences!.map((one) => one.keys),
    );
    expect(new Set(before.map(([first]) => first))).toEqual(new Set([0, 2]));
    expect(new Set(before.map(([, , last]) => last))).toEqual(new Set(upTo(9)));
    const empty = of('empty-sequences').map(({ sequences }) => sequences!);
    for (const list of empty) {
      expect(list).toHaveLength(5);
      expect([
        list[0].queries + list[0].keys,
        list[2].queries + list[2].keys === list[2].keys,
        list[4].queries,
      ]).toEqual([0, true, 0]);
      expect([
        list.reduce((sum, one) => sum + one.queries, 0),
        list.reduce((sum, one) => sum + one.keys, 0),
      ]).toEqual([queries, keys]);
    }
    expectShare(
      empty.map((list) => list[3].keys === 0),
      true,
      0.5,
    );
    expect(new Set(empty.map((list) => list[1].queries))).toEqual(new Set(upTo(queries + 1)));
    expect(new Set(empty.map((list) => list[1].keys))).toEqual(new Set(upTo(keys + 1)));
  });

  it('half-filled tiles: lengths and sequences half a block beyond whole ones', () => {
    const ranges = {
      ...Object.fromEntries(
        ['batch', 'kvHeads', 'groupSize', 'queries', 'qkDim', 'vDim'].map((name) => [
          name,
          { min: 1, max: 4 },
        ]),
      ),
      keys: { min: 5, max: 19 },
    };
    const lengths = (given: typeof ranges) =>
      new Set(
        seeds
          .slice(0, 80)
          .map(
            (seed) =>
              regimes['half-filled-tiles'].lengths!(
                given as never,
                { blockKeys, threshold: 8 },
                randomValues(seed),
              )?.keys,
          ),
      );
    expect(lengths(ranges)).toEqual(new Set([6, 10, 14, 18]));
    expect(lengths({ ...ranges, keys: { min: 6, max: 18 } })).toEqual(new Set([6, 10, 14, 18]));
    expect(lengths({ ...ranges, keys: { min: 7, max: 9 } })).toEqual(new Set([undefined]));
    const pages = of('half-filled-paged-tiles').map(({ sequences }) => sequences!);
    for (const list of pages) {
      expect(list).toHaveLength(3);
      expect([list[1].keys % 4, list[1].queries > 0]).toEqual([2, true]);
      expect([
        list.reduce((sum, one) => sum + one.queries, 0),
        list.reduce((sum, one) => sum + one.keys, 0),
      ]).toEqual([queries, keys]);
    }
    expect(new Set(pages.map(([, one]) => one.keys))).toEqual(new Set([2, 6, 10, 14, 18, 22]));
    expect(new Set(pages.map(([one]) => one.queries))).toEqual(new Set(upTo(queries)));
    expect(new Set(pages.map(([, one]) => one.queries))).toEqual(
      new Set(upTo(queries + 1).slice(1)),
    );
    expect(pages.some(([one]) => one.keys === 0) && pages.some(([, , one]) => one.keys === 0)).toBe(
      true,
    );
  });
});
