import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../../oracles/index.js';
import {
  firstRowOf,
  partShape,
  placedInWhole,
  planParts,
} from '../../../src/audit/parts/part-plan.js';
import {
  placedAmongAll,
  planThinning,
  thinnedPart,
  thinnedReference,
  thinnedRows,
  thinnedTensors,
  thinnedValues,
} from '../../../src/audit/parts/thinning.js';
import { problemShape, quantities } from '../../../src/problem/index.js';
import { filledProblem, pseudorandom } from '../../setup/problems.js';

const shapes = fc
  .record({
    batch: fc.integer({ min: 1, max: 2 }),
    kvHeads: fc.integer({ min: 1, max: 2 }),
    groupSize: fc.integer({ min: 1, max: 2 }),
    queries: fc.integer({ min: 1, max: 700 }),
    keys: fc.integer({ min: 1, max: 64 }),
    qkDim: fc.integer({ min: 1, max: 8 }),
    vDim: fc.integer({ min: 1, max: 8 }),
  })
  .map((one) => ({ ...one, heads: one.kvHeads * one.groupSize }));

describe('parts of a problem', () => {
  it('have every row once, are of one head, begin at tiles, and are as small as is worth it', () => {
    fc.assert(
      fc.property(shapes, fc.integer({ min: 1, max: 2 ** 16 }), (shape, effort) => {
        const { batch, heads, queries, keys, qkDim, vDim } = shape;
        const all = batch * heads * queries;
        const parts = planParts(shape, true, effort);
        const ofRow = keys * (qkDim + vDim);
        const whole = [{ head: null, firstRow: 0, rows: all }];
        expect(planParts(shape, false, effort)).toEqual(whole);
        if (all * ofRow <= effort) {
          expect(parts).toEqual(whole);
          expect(partShape(shape, parts[0])).toEqual(shape);
          expect(firstRowOf(parts[0], shape)).toBe(0);
          return;
        }
        const rows = parts.flatMap((part) => {
          const { head, firstRow, rows: count } = part;
          const isLast = firstRow + count === queries;
          expect(firstRow % 128).toBe(0);
          if (!isLast) {
            expect(count % 128).toBe(0);
            expect(count * ofRow).toBeGreaterThanOrEqual(effort);
            expect((count - 128) * ofRow).toBeLessThan(effort);
          }
          expect(partShape(shape, part)).toEqual({
            batch: 1,
            heads: 1,
            kvHeads: 1,
            groupSize: 1,
            queries: count,
            keys,
            qkDim,
            vDim,
          });
          expect(firstRowOf(part, shape)).toBe(head! * queries + firstRow);
          return Array.from({ length: count }, (_, i) => firstRowOf(part, shape) + i);
        });
        expect(rows).toEqual(Array.from({ length: all }, (_, row) => row));
      }),
    );
  });

  it('have results at the places of the whole', () => {
    const result = { head: 0, firstRow: 3, lastRow: 9, statistic: 5 };
    expect(placedInWhole([result], { head: 4, firstRow: 128, rows: 20 })).toEqual([
      { head: 4, firstRow: 131, lastRow: 137, statistic: 5 },
    ]);
    expect(placedInWhole([result], { head: null, firstRow: 128, rows: 20 })).toEqual([result]);
  });
});

describe('the rows of a sample that statistics are made of', () => {
  const thinnings = fc
    .constantFrom(2, 4, 8)
    .chain((every) => fc.record({ every: fc.constant(every), first: fc.nat(every - 1) }));
  const isLeft = (row: number, { every, first }: { every: number; first: number }) =>
    row >= first && (row - first) % every === 0;
  const rowsBelow = (end: number, thinning: { every: number; first: number }) =>
    Array.from({ length: end }, (_, row) => row).filter((row) => isLeft(row, thinning));

  it('are one in so many, from the first of them on, in each part', () => {
    fc.assert(
      fc.property(thinnings, fc.nat(40), fc.nat(40), (thinning, before, rows) => {
        const left = rowsBelow(before + rows, thinning);
        expect(thinnedRows(before + rows, thinning)).toBe(left.length);
        const first = left.filter((row) => row < before).length;
        expect(thinnedPart({ head: 3, firstRow: before, rows }, thinning)).toEqual({
          head: 3,
          firstRow: first,
          rows: left.length - first,
        });
        left.forEach((row, i) =>
          expect(placedAmongAll({ firstRow: i, lastRow: i, x: 1 }, thinning)).toEqual({
            firstRow: row,
            lastRow: row,
            x: 1,
          }),
        );
      }),
    );
  });

  it('have their own values of every head, exact and given', () => {
    fc.assert(
      fc.property(thinnings, fc.integer({ min: 8, max: 20 }), (thinning, queries) => {
        const frame = { batch: 2, heads: 2, queries, keys: 30, dim: 2, vDim: 3 };
        // Other queries of each head.
        const numbers = (i: number) => (i % queries) + Math.floor(i / queries);
        const problem = filledProblem(frame, pseudorandom(7), {
          causal: true,
          rows: { queries: Int32Array.from({ length: 4 * queries }, (_, i) => numbers(i)), of: 24 },
        });
        const reference = attentionOracle(problem);
        const { shape } = reference;
        const left = [0, 1, 2, 3].flatMap((head) =>
          rowsBelow(queries, thinning).map((row) => head * queries + row),
        );
        const take = (values: ArrayLike<number>, dim: number) =>
          left.flatMap((row) => Array.from({ length: dim }, (_, c) => values[row * dim + c]));
        const { out, lse } = reference.quantities;
        expect([...thinnedValues(out.values, shape, 3, thinning)]).toEqual(take(out.values, 3));
        const thin = thinnedReference(reference, thinning);
        expect(thin.shape).toEqual({ ...shape, queries: left.length / 4 });
        for (const name of ['values', 'radius', 'magnitude'] as const)
          expect([...thin.quantities.out[name]]).toEqual(take(out[name], 3));
        for (const name of ['values', 'radius'] as const)
          expect([...thin.quantities.lse[name]]).toEqual(take(lse[name], 1));
        for (const name of ['maximum', 'denominator', 'level'] as const)
          expect([...thin[name]]).toEqual(take(reference[name], 1));
        const [ofOut, ofLse] = quantities;
        const given = {
          problem,
          out: { quantity: ofOut, format: 'fp32' as const, values: out.values },
          lse: { quantity: ofLse, format: 'fp32' as const, values: lse.values },
        };
        const tensors = thinnedTensors(given, thinning);
        expect([...tensors.out.values]).toEqual(take(out.values, 3));
        expect([...tensors.lse!.values]).toEqual(take(lse.values, 1));
        expect(problemShape(tensors.problem).queries).toBe(left.length / 4);
        // They see the same keys as before.
        const again = attentionOracle(tensors.problem).quantities.out.values;
        take(out.values, 3).forEach((x, i) => expect(again[i]).toBeCloseTo(x, 12));
        expect(thinnedTensors({ ...given, lse: null }, thinning).lse).toBeNull();
      }),
      { numRuns: 20 },
    );
  });

  it('are as few as long rows need, but 16 of a head and one in eight', () => {
    const of = (keys: number, rows: number) =>
      planThinning(
        {
          ...problemShape(filledProblem({ queries: 1, keys: 1, dim: 1 }, () => 0)),
          keys,
          heads: 2,
        },
        { rows, seed: 3 },
      );
    const every = (keys: number, rows: number) => of(keys, rows)?.every ?? 1;
    const long = 2 ** 15 + 1;
    expect(every(2 ** 15, 2 ** 10)).toBe(1);
    // Rows of two heads.
    expect([63, 64, 127, 128, 255, 256, 4096].map((rows) => every(long, rows))).toEqual([
      1, 2, 2, 4, 4, 8, 8,
    ]);
    const firsts = Array.from(
      { length: 40 },
      (_, seed) =>
        planThinning(
          { ...problemShape(filledProblem({ queries: 1, keys: 1, dim: 1 }, () => 0)), keys: long },
          { rows: 128, seed },
        )!.first,
    );
    expect([...new Set(firsts)].sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });
});
