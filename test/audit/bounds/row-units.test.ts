import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { KernelArithmetic, MaximumRule } from '../../../kernels/index.js';
import type { AttentionReference } from '../../../oracles/index.js';
import {
  createRowUnits,
  createSharedMaximum,
  errorsWithSink,
  sunkRow,
} from '../../../src/audit/bounds/row-units.js';
import { RowErrors } from '../../../src/audit/bounds/technique-bound.js';
import { filledProblem, pseudorandom, sequencesOf, tensor } from '../../setup/problems.js';
import { handMadeReference } from '../hand-made.js';

function near(actual: number, wanted: number, what = ''): void {
  if (actual === wanted) return;
  if (!(Math.abs(actual - wanted) <= 1e-12 * Math.abs(wanted))) expect(actual, what).toBe(wanted);
}
const unknown = (shared: 'row' | 'group' | 'none'): MaximumRule => ({
  kind: 'unknown',
  shared,
  factors: null,
});

/** Rows of made-up maxima and sums, of four heads and two kv heads, in two batches or in two sequences. */
function made(seed: number, isPacked: boolean) {
  const random = pseudorandom(seed);
  const [batch, heads, kvHeads, queries] = [isPacked ? 1 : 2, 4, 2, 5];
  const sink = { logits: tensor('fp32', [heads], () => 4 * random()), inLse: random() < 0 };
  const problem = filledProblem({ batch, heads, kvHeads, queries, keys: 6, dim: 2 }, random, {
    sink,
    ...(isPacked && {
      sequences: sequencesOf([
        [2, 3],
        [3, 3],
      ]),
    }),
  });
  const plain = handMadeReference({ batch, heads, queries, lse: () => 3 * random() });
  const values = plain.quantities.lse.values;
  const reference: AttentionReference = {
    ...plain,
    shape: { ...plain.shape, kvHeads, groupSize: 2, keys: 6 },
    // Some rows have no maximum.
    maximum: values.map((x) => (random() < -0.7 ? -Infinity : x - Math.abs(random()))),
    denominator: values.map((x) => x + Math.abs(random())),
  };
  return { problem, reference, batch, heads, queries };
}

const drawn = [fc.integer({ min: 1, max: 2 ** 20 }), fc.boolean()] as const;

describe('the units of rows', () => {
  it('are their own sums and maxima, in octaves, and the sink of their head', () => {
    fc.assert(
      fc.property(...drawn, fc.nat(7), fc.nat(3), (seed, isPacked, some, firstRow) => {
        const { problem, reference, batch, heads, queries } = made(seed, isPacked);
        const head = some % (batch * heads);
        const rows = queries - firstRow;
        const units = createRowUnits(problem, reference, unknown('row'))(head, firstRow, rows);
        expect(units.shared).toBeNull();
        expect(units.isSinkInLse).toBe(problem.sink!.inLse);
        const logits = problem.sink!.logits.data as Float32Array;
        for (let i = 0; i < rows; i++) {
          const row = head * queries + firstRow + i;
          near(units.lse[i], reference.quantities.lse.values[row] / Math.LN2);
          near(units.maximum[i], reference.maximum[row] / Math.LN2);
          near(units.denominator[i], reference.denominator[row] / Math.LN2);
          near(units.sink[i], logits[head % heads] / Math.LN2);
        }
        const { sink: _sink, ...rest } = problem;
        void _sink;
        const without = createRowUnits(rest, reference, unknown('row'))(head, firstRow, rows);
        expect([...without.sink]).toEqual(Array(rows).fill(-Infinity));
        expect(without.isSinkInLse).toBe(false);
      }),
    );
  });

  it('share the largest maximum of the rows of their kv head and sequence, or none, where kernels may', () => {
    fc.assert(
      fc.property(...drawn, (seed, isPacked) => {
        const { problem, reference, batch, heads, queries } = made(seed, isPacked);
        const of = (rule: MaximumRule) => createSharedMaximum(problem, reference, rule);
        // Where the batch counts no sequences, a sequence is a batch entry.
        const sequenceOf = (row: number) =>
          isPacked ? (row % queries < 2 ? 0 : 1) : Math.floor(row / queries / heads);
        for (let head = 0; head < batch * heads; head++)
          for (const query of [0, queries - 1]) {
            const sequence = sequenceOf(head * queries + query);
            const maxima = [...reference.maximum].filter((x, row) => {
              const other = Math.floor(row / queries);
              const isSameGroup = Math.floor(other / 2) === Math.floor(head / 2);
              return isSameGroup && sequenceOf(row) === sequence && Number.isFinite(x);
            });
            const found = of(unknown('group'))(head, sequence);
            if (maxima.length === 0) expect(found).toBeNull();
            else near(found!, Math.max(...maxima) / Math.LN2);
            expect(of(unknown('row'))(head, sequence)).toBeNull();
            expect(of(unknown('none'))(head, sequence)).toBe(0);
            expect(of({ kind: 'whole-row' })(head, sequence)).toBeNull();
          }
        const rows = { queries: Int32Array.of(0), of: 5 };
        expect(() =>
          createSharedMaximum({ ...problem, rows }, reference, unknown('group')),
        ).toThrow('judge all rows');
      }),
    );
  });
});

describe('a row with a sink', () => {
  const exponent = fc.integer({ min: -40, max: 40 }).map((x) => x / 4);
  const row = fc.record({
    lse: exponent,
    maximum: exponent,
    more: fc.constantFrom(0, -2, 3, Infinity),
    sink: fc.oneof(exponent, fc.constant(-Infinity)),
    shared: fc.option(exponent),
    isSinkInLse: fc.boolean(),
  });

  it('has the sink’s weight, and the part of all that is left to keys', () => {
    fc.assert(
      fc.property(row, ({ lse, maximum, more, sink, shared, isSinkInLse }) => {
        const one = (x: number) => Float64Array.of(7, x);
        const units = {
          lse: one(lse),
          maximum: one(maximum),
          denominator: one(lse + more),
          sink: one(sink),
          shared,
          isSinkInLse,
        };
        const found = sunkRow(units, 1);
        if (sink === -Infinity || more === Infinity) {
          expect(found).toBeNull();
          return;
        }
        const weight = 2 ** (sink - lse - more);
        expect(found).toEqual({
          share: more > 0 ? 2 ** -more : 1,
          weight,
          exponent: sink,
          // Weights are relative to it where it is above the maximum in use.
          gain: sink > (shared ?? maximum) ? weight : 0,
          isInLse: isSinkInLse,
        });
      }),
    );
  });

  it('has the errors of one more weight, whose exponent is the sink times log2 e', () => {
    const names = Object.keys(new RowErrors()) as (keyof RowErrors)[];
    const numbers = fc.array(fc.integer({ min: 1, max: 64 }), {
      minLength: names.length,
      maxLength: names.length,
    });
    fc.assert(
      fc.property(
        numbers,
        fc.constantFrom(0.5, 1),
        fc.constantFrom(0, 0.25),
        exponent,
        exponent,
        (sizes, share, weight, sink, origin) => {
          const errors = Object.assign(
            new RowErrors(),
            Object.fromEntries(names.map((name, i) => [name, sizes[i]])),
          );
          const arithmetic = {
            exponential: { hardware: 2 ** -4 },
            finish: { elementwise: 2 ** -6 },
            rowSumAddition: 2 ** -8,
          } as unknown as KernelArithmetic;
          const sunk = { share, weight, exponent: sink, gain: 0, isInLse: false };
          const found = errorsWithSink(errors, sunk, arithmetic, origin);
          const distance = Math.abs(sink - origin);
          // Two roundings: of log2 e, and of the product.
          const off = 2 ** (2 * 2 ** -6 * Math.abs(sink)) - 1;
          const added: Partial<Record<keyof RowErrors, number>> = {
            mass: weight,
            distance: weight * distance,
            distanceSquared: weight * distance ** 2,
            scores: weight * off,
            scoresSquared: weight * off ** 2,
            exponentialVariance: 2 * (weight * 2 ** -4) ** 2,
            rowSum: 2 ** -8,
          };
          const squares = ['exponentialVariance', 'squares', 'squaresAlike'];
          names.forEach((name, i) => {
            const factor = name === 'largest' ? 1 : squares.includes(name) ? share ** 2 : share;
            near(found[name] as number, sizes[i] * factor + (added[name] ?? 0), name);
          });
          const lost = errorsWithSink(errors, { ...sunk, weight: 0 }, arithmetic, Infinity);
          expect(lost.distance).toBe(errors.distance * share);
        },
      ),
    );
  });
});
