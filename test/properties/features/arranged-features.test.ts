import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  arrangeFeatures,
  arrangementLoss,
  type FeatureSelection,
} from '../../../properties/problems/features/arrange-features.js';
import {
  alignedSegments,
  drawBlockMask,
  drawMask,
  drawSegments,
  piecesOf,
} from '../../../properties/problems/features/draw-masks.js';
import { drawFeatures } from '../../../properties/problems/features/draw-features.js';
import { randomValues } from '../../../properties/problems/values.js';
import { formats } from '../../../src/formats/index.js';
import { broadcastStrides, type ProblemFeatures } from '../../../src/problem/index.js';
import { sequencesOf, tensor } from '../../setup/problems.js';

const sizes = { batch: 2, kvHeads: 2, groupSize: 2, queries: 3, keys: 5, qkDim: 1, vDim: 1 };
const [batches, heads, queries, keys] = [2, 4, 3, 5];
const upTo = (count: number, first = 0) => Array.from({ length: count }, (_, i) => first + i);

/** Some indices below a count, in any order, some more than once. */
const indices = (count: number) =>
  fc.array(fc.integer({ min: 0, max: count - 1 }), { minLength: 1, maxLength: count + 2 });

const selections: fc.Arbitrary<FeatureSelection> = fc.record({
  batches: indices(batches),
  heads: indices(heads),
  queries: indices(queries),
  keys: indices(keys),
});

/** A tensor that is broadcast to [batches, heads, queries, keys], by places. */
const broadcast =
  ({ shape, data }: { readonly shape: readonly number[]; readonly data: ArrayLike<number> }) =>
  (b: number, h: number, q: number, k: number) => {
    const strides = broadcastStrides(shape);
    return data[b * strides.batch + h * strides.head + q * strides.query + k * strides.key];
  };

function request(seed: number, blockKeys = 2) {
  const random = randomValues(seed);
  return { sizes, format: formats.bf16, tiling: { blockKeys }, random, sequences: null };
}

describe('features of rows that are picked', () => {
  it('are those of the rows, element by element, along the axes that they have', () => {
    fc.assert(
      fc.property(fc.nat(), selections, (seed, selection) => {
        const given = drawFeatures(['mask', 'bias', 'dropout'], request(seed));
        const left = arrangeFeatures(given, selection);
        for (const [before, after] of [
          [given.mask, left.mask],
          [given.bias, left.bias],
          [given.dropout?.kept, left.dropout?.kept],
        ] as const) {
          const shape = [1, 1, 1, 1, ...before!.shape].slice(-4);
          const counts = [selection.batches, selection.heads, selection.queries, selection.keys];
          expect(after!.shape).toEqual(shape.map((size, i) => (size > 1 ? counts[i].length : 1)));
          expect(after!.data).toHaveLength(after!.shape.reduce((a, b) => a * b, 1));
          expect(after!.data.constructor).toBe(before!.data.constructor);
          const [now, then] = [broadcast(after!), broadcast(before!)];
          selection.batches.forEach((batch, b) =>
            selection.heads.forEach((head, h) =>
              selection.queries.forEach((query, q) =>
                selection.keys.forEach((key, k) =>
                  expect(now(b, h, q, k)).toBe(then(batch, head, query, key)),
                ),
              ),
            ),
          );
        }
        expect(left.dropout!.probability).toBe(given.dropout!.probability);
        expect(Object.keys(left).sort()).toEqual(['bias', 'dropout', 'mask']);
      }),
      { numRuns: 30 },
    );
  });

  it('by head, batch and document too', () => {
    fc.assert(
      fc.property(fc.nat(), fc.boolean(), selections, (seed, isWide, selection) => {
        const shape = isWide ? [batches, heads] : [heads];
        const given: ProblemFeatures = {
          alibiSlopes: tensor('fp32', shape, (i) => i + 1),
          sink: { logits: tensor('fp32', [heads], (i) => -i), inLse: isWide },
          segments: drawSegments(request(seed)),
          prefix: seed % 4,
        };
        const left = arrangeFeatures(given, selection);
        const slopes = left.alibiSlopes!;
        const all = isWide ? selection.batches : [0];
        expect([...slopes.data]).toEqual(
          all.flatMap((batch) => selection.heads.map((head) => batch * heads + head + 1)),
        );
        expect(slopes.shape).toEqual(
          isWide ? [all.length, selection.heads.length] : [selection.heads.length],
        );
        expect([...left.sink!.logits.data].map((x) => x + 0)).toEqual(
          selection.heads.map((head) => 0 - head),
        );
        expect([left.sink!.inLse, left.prefix]).toEqual([isWide, seed % 4]);
        for (const [name, rows, count] of [
          ['queries', selection.queries, queries],
          ['keys', selection.keys, keys],
        ] as const) {
          const [before, after] = [given.segments![name], left.segments![name]];
          const ofBatches = before.shape.length === 1 ? [0] : selection.batches;
          expect([...after.data]).toEqual(
            ofBatches.flatMap((batch) => rows.map((row) => before.data[batch * count + row])),
          );
          expect(after.shape).toEqual(
            before.shape.length === 1 ? [rows.length] : [ofBatches.length, rows.length],
          );
        }
      }),
      { numRuns: 40 },
    );
  });

  it('by blocks: the first of them, as many as are left, of the batches and heads', () => {
    const someRows = fc.record({
      batches: indices(batches),
      heads: indices(heads),
      queries: fc.integer({ min: 1, max: queries }).map((count) => upTo(count)),
      keys: fc.integer({ min: 1, max: keys }).map((count) => upTo(count)),
    });
    fc.assert(
      fc.property(fc.nat(), someRows, (seed, selection) => {
        const given = drawBlockMask(request(seed));
        const left = arrangeFeatures({ blockMask: given }, selection).blockMask!;
        const { blockQueries, blockKeys } = given;
        expect([left.blockQueries, left.blockKeys]).toEqual([blockQueries, blockKeys]);
        const columns = Math.ceil(selection.keys.length / blockKeys);
        const rows = Math.ceil(selection.queries.length / blockQueries);
        const [wideBatches, wideHeads, rowsBefore] = given.counts.shape;
        expect(left.counts.shape).toEqual([
          wideBatches > 1 ? selection.batches.length : 1,
          wideHeads > 1 ? selection.heads.length : 1,
          rows,
        ]);
        expect(left.indices.shape).toEqual([...left.counts.shape, columns]);
        const list = ({ counts, indices: all }: typeof given, at: number) => {
          const capacity = all.shape[3];
          return [...all.data.subarray(at * capacity, at * capacity + counts.data[at])];
        };
        const [b, h] = left.counts.shape;
        for (let at = 0; at < b * h * rows; at++) {
          const batch = wideBatches > 1 ? selection.batches[Math.floor(at / (h * rows))] : 0;
          const head = wideHeads > 1 ? selection.heads[Math.floor(at / rows) % h] : 0;
          const before = list(given, (batch * wideHeads + head) * rowsBefore + (at % rows));
          expect(list(left, at)).toEqual(before.filter((column) => column < columns));
        }
      }),
      { numRuns: 60 },
    );
  });

  it('of packed sequences: those of the rows that each keeps', () => {
    const sequences = sequencesOf([
      [1, 2],
      [0, 1],
      [2, 2],
    ]);
    const whole = { batches: [0], heads: upTo(heads) };
    fc.assert(
      fc.property(fc.nat(), fc.subarray(upTo(3)), fc.subarray(upTo(5)), (seed, rows, columns) => {
        const data = randomValues(seed);
        const mask = {
          shape: [3, 1, 2, 2],
          data: Uint8Array.from({ length: 12 }, () => data.integer(0, 1)),
        };
        const left = arrangeFeatures(
          { sequences, mask },
          { ...whole, queries: rows, keys: columns },
        );
        const within = (all: readonly number[], first: number, count: number) =>
          all.filter((row) => row >= first && row < first + count).map((row) => row - first);
        const kept = sequences.map((one) => ({
          queries: within(rows, one.firstQuery, one.queries),
          keys: within(columns, one.firstKey, one.keys),
        }));
        expect(left.sequences).toEqual(
          sequencesOf(kept.map((one) => [one.queries.length, one.keys.length] as const)),
        );
        const at = broadcast(left.mask!);
        kept.forEach((one, index) =>
          one.queries.forEach((query, q) =>
            one.keys.forEach((key, k) =>
              expect(at(index, 0, q, k)).toBe(broadcast(mask)(index, 0, query, key)),
            ),
          ),
        );
        // One row of a mask for all sequences stays one.
        const shared = { shape: [1, heads, 1, 1], data: Uint8Array.of(1, 0, 1, 0) };
        const ofShared = arrangeFeatures(
          { sequences, mask: shared },
          { ...whole, queries: rows, keys: columns },
        );
        expect(ofShared.mask).toEqual(shared);
      }),
      { numRuns: 30 },
    );
  });
});

describe('what another order of rows makes of a feature', () => {
  const frame = { batch: 1, heads, queries, keys };
  const loss = (features: ProblemFeatures, rows: readonly number[], columns: readonly number[]) =>
    arrangementLoss(features, frame, {
      batches: [0],
      heads: upTo(heads),
      queries: rows,
      keys: columns,
    }) !== null;
  const [allRows, allKeys] = [upTo(queries), upTo(keys)];
  const orders: readonly (readonly [rows: readonly number[], columns: readonly number[]])[] = [
    [allRows, allKeys],
    [allRows, upTo(4)],
    [upTo(2), allKeys],
    [[1, 2], allKeys],
    [allRows, [1, 2, 3, 4]],
    [[0, 2], allKeys],
    [allRows, [0, 1, 3, 4]],
    [[1, 0, 2], allKeys],
    [allRows, [1, 0, 2, 3, 4]],
    [allRows, [0, 0, 1, 2, 3]],
    [[0, 0, 1], allKeys],
  ];
  const lost = (features: ProblemFeatures) =>
    orders.map(([rows, columns]) => loss(features, rows, columns));

  it('is another problem where it goes by places that are others', () => {
    const [no, yes] = [false, true];
    const blockMask = drawBlockMask(request(1));
    const alibiSlopes = tensor('fp32', [heads], () => 1);
    // Blocks are of first rows and keys, a prefix of all keys, ALiBi of rows that follow one another.
    expect(lost({ blockMask })).toEqual([no, no, no, yes, yes, yes, yes, yes, yes, yes, yes]);
    expect(lost({ prefix: 2 })).toEqual([no, yes, no, no, yes, no, yes, no, yes, yes, no]);
    expect(lost({ prefix: 0 })).toEqual(orders.map(() => no));
    expect(lost({ alibiSlopes })).toEqual([no, no, no, no, no, yes, yes, yes, yes, yes, yes]);
    // Rows of a sequence stay in their order, once each.
    const sequences = sequencesOf([
      [1, 2],
      [2, 3],
    ]);
    expect(lost({ sequences })).toEqual([no, no, no, no, no, no, no, yes, yes, yes, yes]);
    const rows = { of: 9, queries: Int32Array.from(upTo(12)) };
    expect(lost({ rows })).toEqual(orders.map((_, i) => i > 0));
    for (const free of [
      { mask: drawMask(request(2)) },
      { sink: { logits: alibiSlopes, inLse: true } },
    ])
      expect(lost(free)).toEqual(orders.map(() => no));
  });
});

describe('documents', () => {
  it('are pieces up to their ends, and of queries those of the keys at their diagonal', () => {
    const ends = fc.array(fc.nat({ max: 9 }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(ends, fc.nat({ max: 12 }), (unsorted, more) => {
        const cuts = [...unsorted].sort((a, b) => a - b);
        const length = cuts[cuts.length - 1];
        const pieces = piecesOf(cuts, length);
        expect(pieces).toEqual(
          upTo(length).map((place) => cuts.filter((end) => end <= place).length),
        );
        const aligned = alignedSegments(pieces, more);
        expect(aligned).toEqual(
          upTo(more).map((query) => pieces[Math.max(0, query + length - more)] ?? 0),
        );
      }),
    );
  });
});
