import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createClock,
  createShadowMemory,
  footprintsMeet,
  forEachWritten,
  Stamp,
  tickClock,
  type Conflict,
  type GlobalFootprint,
  type Region,
} from '../../../src/machine/ordering/index.js';
import { createGlobalShadow } from '../../../src/machine/ordering/grid-order.js';
import { regionInCells } from '../../../src/machine/ordering/region.js';
import { scaled } from '../../setup/effort.js';

/** The cells of a region one by one, of words or bytes as it counts. */
function cellsOf({ start, count, stride = 0, rows = 1 }: Region): number[] {
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: count }, (_, i) => start + row * stride + i),
  ).flat();
}

const unit = fc.constantFrom('word' as const, 'byte' as const);
const region = fc.record({
  unit,
  start: fc.nat(16),
  count: fc.nat(9),
  stride: fc.nat(12),
  rows: fc.nat(3),
});

describe('the cells of a region', () => {
  it('are its words or its bytes, however the memory is divided', () => {
    const words = 9;
    fc.assert(
      fc.property(region, fc.constantFrom(1 as const, 4 as const), (of, cellsOfWord) => {
        const perWord = of.unit === 'byte' ? 4 : 1;
        // The last row counts where there is none: an empty region has a place, too.
        const end = of.start + Math.max(0, of.rows - 1) * of.stride + of.count;
        if (end > words * perWord) {
          expect(() => regionInCells(of, words, cellsOfWord)).toThrow('are not in a memory');
          return;
        }
        const found = regionInCells(of, words, cellsOfWord);
        const inBytes = cellsOf(of).flatMap((cell) =>
          of.unit === 'byte' ? [cell] : [0, 1, 2, 3].map((byte) => 4 * cell + byte),
        );
        if (cellsOfWord === 4) {
          expect(found?.unit).toBe('byte');
          expect(cellsOf(found!)).toEqual(inBytes);
          return;
        }
        const isWhole = [of.start, of.count, of.stride].every((size) => size % perWord === 0);
        expect(found !== null).toBe(isWhole);
        if (found === null) return;
        expect(found.unit).toBe('word');
        const cells = cellsOf(found).flatMap((cell) => [0, 1, 2, 3].map((byte) => 4 * cell + byte));
        expect(cells).toEqual(inBytes);
      }),
      { numRuns: scaled(300) },
    );
  });

  it('are whole numbers from 0 on', () => {
    for (const wrong of [{ start: -1 }, { count: -1 }, { start: 0.5 }, { count: 1.5 }])
      expect(() => regionInCells({ start: 1, count: 1, ...wrong }, 9, 1)).toThrow('whole numbers');
    for (const wrong of [{ stride: -1 }, { stride: 0.5 }, { rows: -1 }, { rows: 1.5 }])
      expect(() => regionInCells({ start: 3, count: 1, ...wrong }, 9, 1)).toThrow('whole numbers');
  });
});

/** Words of a page of global memory. */
const pageWords = 2 ** 14;

interface Step {
  readonly chain: number;
  readonly kind: 'read' | 'write';
  readonly region: Region;
}

/** Accesses around the border of two pages, of words or bytes, some of them over both. */
const step: fc.Arbitrary<Step> = fc
  .record({
    chain: fc.nat(1),
    kind: fc.constantFrom('read' as const, 'write' as const),
    unit,
    start: fc.nat(12),
    count: fc.integer({ min: 1, max: 9 }),
    stride: fc.nat(12),
    rows: fc.integer({ min: 1, max: 3 }),
  })
  .map(({ chain, kind, ...area }) => {
    const border = (pageWords - 8) * (area.unit === 'byte' ? 4 : 1);
    return { chain, kind, region: { ...area, start: area.start + border } };
  });

/** How many words have each conflict, on whatever page; or, without counts, which conflicts there are. */
function total(conflicts: readonly Conflict[], counts: boolean): [string, number][] {
  const found = new Map<string, number>();
  for (const { kind, earlier, missing, words } of conflicts) {
    const name = `${kind} ${earlier?.site} ${missing}`;
    found.set(name, counts ? (found.get(name) ?? 0) + words : 1);
  }
  return [...found].sort(([x], [y]) => (x < y ? -1 : 1));
}

it('global memory is one shadow, whatever its pages; what nobody reads is no finding there', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 10 }), (steps) => {
      const footprint: GlobalFootprint = new Map();
      const whole = createShadowMemory(2 * pageWords);
      whole.initialise({ start: 0, count: 2 * pageWords });
      const paged = createGlobalShadow({}, footprint);
      const clocks = [0, 1].map(() => ({ clock: createClock(), asyncView: createClock() }));
      const marks = new Map<number, number>();
      let hasBytes = false;
      for (const { chain, kind, region: area } of steps) {
        const time = tickClock(clocks[chain].clock, chain);
        const site = `${chain} ${time}`;
        const stamp = new Stamp({ chain, time, kind, site, proxy: 'generic', who: '', step: 0 });
        hasBytes ||= area.unit === 'byte';
        const expected = whole[kind](area, stamp, clocks[chain]);
        const found = paged.access(kind, area, stamp, clocks[chain]);
        const known = expected.filter((one) => one.kind !== 'overwritten-unread');
        // Of words of which only a part is meant each page counts those that it has divided.
        expect(total(found, !hasBytes)).toEqual(total(known, !hasBytes));
        expect(found[0]?.firstWord).toBe(known[0]?.firstWord);
        const perWord = area.unit === 'byte' ? 4 : 1;
        for (const cell of cellsOf(area)) {
          const word = Math.floor(cell / perWord);
          marks.set(word, (marks.get(word) ?? 0) | (kind === 'read' ? 1 : 2));
        }
      }
      const noted = new Map<number, number>();
      for (const [page, words] of footprint)
        words.forEach((mark, i) => mark !== 0 && noted.set(page * pageWords + i, mark));
      const sorted = (of: Map<number, number>) => [...of].sort(([x], [y]) => x - y);
      expect(sorted(noted)).toEqual(sorted(marks));
    }),
    { numRuns: scaled(25) },
  );
});

it('within a page, global memory tells what a memory of that page does, of all rows at once', () => {
  const inPage = fc.record({
    chain: fc.nat(1),
    kind: fc.constantFrom('read' as const, 'write' as const),
    unit,
    start: fc.nat(6),
    count: fc.integer({ min: 1, max: 4 }),
    stride: fc.nat(8),
    rows: fc.integer({ min: 1, max: 3 }),
  });
  fc.assert(
    fc.property(fc.nat(2), fc.array(inPage, { maxLength: 8 }), (page, steps) => {
      const alone = createShadowMemory(pageWords);
      alone.initialise({ start: 0, count: pageWords });
      const paged = createGlobalShadow({});
      const clocks = [0, 1].map(() => ({ clock: createClock(), asyncView: createClock() }));
      for (const { chain, kind, ...area } of steps) {
        const time = tickClock(clocks[chain].clock, chain);
        const site = `${chain} ${time}`;
        const stamp = new Stamp({ chain, time, kind, site, proxy: 'generic', who: '', step: 0 });
        const before = page * pageWords;
        const start = area.start + before * (area.unit === 'byte' ? 4 : 1);
        const wanted = alone[kind](area, stamp, clocks[chain])
          .filter((one) => one.kind !== 'overwritten-unread')
          .map((one) => ({ ...one, firstWord: before + one.firstWord }));
        expect(paged.access(kind, { ...area, start }, stamp, clocks[chain])).toEqual(wanted);
      }
    }),
    { numRuns: scaled(20) },
  );
});

describe('footprints', () => {
  const of = (page: number, ...words: number[]): GlobalFootprint =>
    new Map([[page, Uint8Array.from(words)]]);

  it('meet where one has written what the other has touched', () => {
    for (let one = 0; one < 4; one++)
      for (let other = 0; other < 4; other++) {
        const meets = one !== 0 && other !== 0 && (one >= 2 || other >= 2);
        expect(footprintsMeet(of(3, 0, one), of(3, 0, other))).toBe(meets);
        expect(footprintsMeet(of(3, one, 0), of(3, other, 0))).toBe(meets);
        expect(footprintsMeet(of(3, one, 0), of(3, 0, other))).toBe(false);
        expect(footprintsMeet(of(3, one), of(4, other))).toBe(false);
      }
    const apart = new Map([...of(2, 2), ...of(3, 2)]);
    expect(footprintsMeet(apart, of(3, 1))).toBe(true);
  });

  it('are told run by run of written words', () => {
    const runs: [number, number][] = [];
    const whole = new Map([...of(0, 2, 3, 1, 0, 2), ...of(2, 1, 2)]);
    forEachWritten(whole, (address, bytes) => runs.push([address, bytes]));
    const second = 2 * pageWords * 4;
    expect(runs).toEqual([
      [0, 8],
      [16, 4],
      [second + 4, 4],
    ]);
  });
});
