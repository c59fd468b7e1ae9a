import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Clock, Stamp } from '../../../src/machine/ordering/index.js';
import { createTensorAllocations } from '../../../src/machine/ordering/lifetimes.js';
import type { OrderedRun } from '../../../src/machine/ordering/order-tracker.js';
import { scaled } from '../../setup/effort.js';
import {
  chainCount,
  Events,
  knowledge,
  knows,
  type Knowledge,
  lastOfChains,
  recordedFindings,
} from './drawn-events.js';

const machine = {} as OrderedRun;
const allColumns = Array.from({ length: 512 }, (_, column) => column);

/** What a warp does: it allocates so many columns, frees an allocation, gives up its right to allocate, or uses a column. */
interface Act {
  readonly does: 'alloc' | 'dealloc' | 'relinquish' | 'use';
  readonly chain: number;
  readonly columns: number;
  readonly which: number;
  readonly known: Knowledge;
}

const act: fc.Arbitrary<Act> = fc.record<Act>({
  does: fc.constantFrom('alloc', 'alloc', 'dealloc', 'dealloc', 'relinquish', 'use', 'use'),
  chain: fc.nat(chainCount - 1),
  columns: fc.constantFrom(32, 64, 128, 256, 257, 512),
  which: fc.nat(511),
  known: knowledge,
});

const all = [1, 1, 1, 1];
const plain = { chain: 0, columns: 256, which: 0, known: all };
/** One column too few is free without the last deallocation, next to the columns that it frees. */
const shortByOne: Act[] = [
  { ...plain, does: 'alloc' },
  { ...plain, does: 'alloc' },
  { ...plain, does: 'dealloc' },
  { ...plain, does: 'dealloc', chain: 1 },
  { ...plain, does: 'alloc', columns: 257, known: [1, 0, 1, 1] },
];

interface Happening {
  readonly kind: 'alloc' | 'dealloc' | 'relinquish';
  readonly firstColumn: number;
  readonly columns: number;
  readonly clock: Clock;
  readonly stamp: Stamp;
}

const within = (column: number, { firstColumn, columns }: Happening) =>
  column >= firstColumn && column < firstColumn + columns;

/** The last event that made a column what it is; undefined before any. */
const lastAt = (happened: readonly Happening[], column: number) =>
  happened.findLast((one) => one.kind !== 'relinquish' && within(column, one));

/** The first of so many adjacent columns that are all free; −1 for none. */
function roomFor(columns: number, isFree: (column: number) => boolean): number {
  return allColumns.findIndex((first) =>
    first + columns > 512 ? false : allColumns.slice(first, first + columns).every(isFree),
  );
}

it('allocations depend on the schedule where an event may be swapped with them, and on no other one', () => {
  let [forced, swaps, uses] = [0, 0, 0];
  fc.assert(
    fc.property(fc.array(act, { maxLength: 30, size: 'max' }), (acts) => {
      const { findings, reports } = recordedFindings();
      const dependences: unknown[] = [];
      const allocations = createTensorAllocations(findings, (stamp) => dependences.push(stamp));
      const events = new Events();
      const happened: Happening[] = [];
      for (const { does, chain, columns, which, known } of acts) {
        const clock = events.clock(known);
        const isFree = (column: number) => lastAt(happened, column)?.kind !== 'alloc';
        reports.length = 0;
        dependences.length = 0;
        const unknown = (kind: Happening['kind']) =>
          lastOfChains(happened.filter((one) => one.kind === kind)).filter(
            ({ stamp }) => !knows(clock, stamp),
          );
        if (does === 'use') {
          const stamp = events.next(chain);
          allocations.check(machine, 1, clock, which, stamp);
          const last = lastAt(happened, which);
          const isFreed = last?.kind === 'dealloc';
          const isWrong = last !== undefined && (isFreed || !knows(clock, last.stamp));
          const how = isFreed ? 'after it has been freed' : 'in no order with its allocation';
          const message = `tensor memory, column ${which}: used ${how}`;
          expect(reports).toEqual(
            isWrong ? [{ kind: 'race', cta: 1, message, stamps: [last.stamp, stamp] }] : [],
          );
          uses += reports.length;
          continue;
        }
        let place = { firstColumn: 0, columns: 0 };
        const live = happened.filter(
          (one) => one.kind === 'alloc' && lastAt(happened, one.firstColumn) === one,
        );
        if (does === 'alloc') {
          const firstColumn = roomFor(columns, isFree);
          if (firstColumn === -1) continue;
          place = { firstColumn, columns };
        } else if (does === 'dealloc') {
          if (live.length === 0) continue;
          place = live[which % live.length];
        }
        const kind = does as Happening['kind'];
        const stamp = events.next(chain);
        const event = {
          kind,
          firstColumn: place.firstColumn,
          columns: place.columns,
          clock,
          stamp,
        };
        const swapped = unknown('alloc');
        if (kind === 'alloc') {
          swapped.push(...unknown('relinquish'));
          const frees = unknown('dealloc');
          const [only] = frees;
          // Without the only free that could come later there is no room: it comes before in every schedule.
          const isForced =
            frees.length === 1 &&
            roomFor(columns, (column) => isFree(column) && !within(column, only)) === -1;
          if (isForced) forced++;
          else swapped.push(...frees);
        }
        allocations.happen(machine, 1, event);
        happened.push(event);
        expect(reports.map(({ stamps }) => stamps)).toEqual(
          swapped.map((earlier) => [earlier.stamp, stamp]),
        );
        expect(dependences).toEqual(swapped.map((earlier) => earlier.stamp));
        for (const report of reports)
          expect(report).toMatchObject({ kind: 'schedule-dependent', cta: 1 });
        swaps += swapped.length;
      }
    }),
    { numRuns: scaled(120), examples: [[shortByOne]] },
  );
  expect(Math.min(forced, swaps, uses)).toBeGreaterThan(0);
});
