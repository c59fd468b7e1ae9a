import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { levels, type AttentionReference, type Level } from '../../../oracles/index.js';
import type { KernelBound } from '../../../src/audit/bounds/index.js';
import {
  vDim,
  places,
  drawn,
  sum,
  made,
  collect,
  defined,
  expectClose,
  fillFrom,
  type Drawn,
  type Made,
} from './collected-rows.js';

const usual: Drawn = {
  seed: 1,
  sumsTruncate: false,
  hasSinks: true,
  isSinkInLse: false,
  share: null,
  hasErrors: true,
  typicalWeight: 2 ** -9,
  addition: 2 ** -25,
  keysOfRow: 96,
  isDominated: false,
};

describe('rows that are collected', () => {
  it('have the errors that bounds, sinks, dropout and weights that round alike leave them', () => {
    fc.assert(
      fc.property(drawn, (of) => {
        const case_ = made(of);
        const [first, rows] = [4, 5];
        const { finished, added, phases } = collect(case_, first, rows);
        const wanted = finished.map((_, i) => defined(case_, first + i, of));
        finished.forEach((row, i) => expectClose(row, wanted[i].row, `row ${i}`));
        added.forEach((one, i) => expectClose(one, wanted[i].added, `added ${i}`));
        expect(added.length).toBe(rows);
        for (const d of [0, 1, 2, 3])
          for (const family of [0, 1, 2]) {
            const from = (3 * d + family) * places;
            const total = sum([...phases.subarray(from, from + places)]);
            expectClose(total, sum(wanted.map((one) => one.sum[d])), `phases ${d}, ${family}`);
          }
      }),
      { numRuns: 40 },
    );
  });

  it('are those of numbers whose squares and sums are numbers', () => {
    const row = 5;
    const isUsed = (changed: (case_: Made) => Partial<Made['model']>) => {
      const case_ = made(usual);
      const model = { ...case_.model, ...changed(case_) };
      const { finished, phases } = collect({ ...case_, model }, 4, 3);
      expect([finished[0], finished[2]]).not.toContain(null);
      const others = [4, 6].map((one) => defined(case_, one, usual).sum[0]);
      const own = defined(case_, row, usual).sum[0];
      const total = sum([...phases.subarray(0, places)]);
      // A row that is left out adds nothing to the others' sums.
      expectClose(total, sum(others) + (finished[1] === null ? 0 : own));
      return finished[1] !== null;
    };
    const at = <T extends Float64Array | Uint8Array>(array: T, index: number, x: number): T =>
      array.map((one, i) => (i === index ? x : one)) as T;
    const ofReference = (change: (reference: AttentionReference) => Partial<AttentionReference>) =>
      isUsed(({ model: { reference } }) => ({ reference: { ...reference, ...change(reference) } }));
    const level = (name: Level) =>
      ofReference((one) => ({ level: at(one.level, row, levels.indexOf(name)) }));
    const magnitude = (x: number) =>
      ofReference(({ quantities: { out, lse } }) => ({
        quantities: {
          out: { ...out, magnitude: at(out.magnitude, row * vDim + 2, x) },
          lse,
        },
      }));
    const output = (x: number) => isUsed(({ model }) => ({ out: at(model.out, row * vDim, x) }));
    const instrument = (which: 'direction' | 'pattern', x: number) =>
      isUsed(({ instruments }) => ({
        makeInstruments: fillFrom(
          instruments.map((one, d) =>
            d === 2 ? { ...one, [which]: at(one[which], row * vDim + 1, x) } : one,
          ),
        ),
      }));
    expect(isUsed(() => ({}))).toBe(true);
    expect(level('special')).toBe(false);
    for (const x of [Infinity, -Infinity, NaN]) {
      expect(ofReference((one) => ({ denominator: at(one.denominator, row, x) }))).toBe(false);
      expect(ofReference((one) => ({ maximum: at(one.maximum, row, x) }))).toBe(false);
      expect(output(x)).toBe(false);
      expect(instrument('direction', x)).toBe(false);
      expect(instrument('pattern', x)).toBe(false);
      expect(magnitude(x)).toBe(false);
    }
    expect([2 ** -299, 2 ** 299, 0].map(magnitude)).toEqual([true, true, true]);
    expect([2 ** -301, 2 ** 301].map(magnitude)).toEqual([false, false]);
    expect(
      isUsed(({ bounds }) => ({
        bound: {
          row: (one: number) => ({ ...bounds[one], isCoarse: one === row }),
        } as unknown as KernelBound,
      })),
    ).toBe(false);
  });

  it('forget the sinks and weights of rows before them', () => {
    const case_ = made(usual);
    const alone = collect(case_, 6, 2).finished;
    const { finished } = collect(case_, 4, 4);
    expect(finished.slice(2)).toEqual(alone);
  });
});
