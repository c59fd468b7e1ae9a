import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createMbarrier, type Mbarrier } from '../../../src/machine/ordering/barriers.js';
import { clockTime, memoryModels, type Stamp } from '../../../src/machine/ordering/index.js';
import { createInitialisationFences } from '../../../src/machine/ordering/initialisation-fences.js';
import type { OrderedRun, WarpOrder } from '../../../src/machine/ordering/order-tracker.js';
import { scaled } from '../../setup/effort.js';
import { chainCount, Events, knowledge, knows, recordedFindings } from './drawn-events.js';

const machine = {} as OrderedRun;

const act = fc.record({
  does: fc.constantFrom(
    'initialise',
    'initialise',
    'end',
    'fence',
    'fence',
    'use',
    'use',
    'commit',
  ),
  barrier: fc.nat(2),
  /** Two chains belong to one thread, whose lanes diverge. */
  chain: fc.nat(chainCount - 1),
  known: knowledge,
  ofProxy: knowledge,
});

const threadOf = (chain: number) => Math.min(chain, 2);

/** A barrier that lives, with the first fence of its own thread that covers its initialisation. */
interface Life {
  readonly barrier: Mbarrier;
  readonly stamp: Stamp;
  fence: { readonly chain: number; readonly time: number } | null;
  isReported: boolean;
}

it('bytes are counted on an mbarrier after a fence of who has initialised it, or a proxy fence on the way', () => {
  let [reported, lenient, unordered, unfencedCommits] = [0, 0, 0, 0];
  fc.assert(
    fc.property(
      fc.constantFrom(memoryModels.practice, memoryModels.ptx),
      fc.array(act, { maxLength: 40, size: 'max' }),
      (model, acts) => {
        const { findings, reports } = recordedFindings();
        const fences = createInitialisationFences(model, findings);
        const events = new Events();
        const lives: (Life | undefined)[] = [];
        let areCommitsFenced = true;
        let told = 0;
        for (const { does, barrier: at, chain, known, ofProxy } of acts) {
          reports.length = 0;
          const clock = events.clock(known);
          const clocks = { clock, asyncView: events.clock(ofProxy) };
          const life = lives[at];
          const thread = threadOf(chain);
          const isFenced = (one: Life) =>
            knows(clocks.asyncView, one.stamp) ||
            (one.fence !== null && clockTime(clock, one.fence.chain) >= one.fence.time);
          if (does === 'initialise' && life === undefined) {
            const stamp = events.next(chain);
            const barrier = createMbarrier(`barrier ${at}`, at, 8, 1);
            fences.initialise({ thread } as WarpOrder, barrier, stamp);
            lives[at] = { barrier, stamp, fence: null, isReported: false };
          } else if (does === 'fence') {
            const { time } = events.next(chain);
            clock.times[chain] = time;
            clock.length = Math.max(clock.length, chain + 1);
            fences.fence({ thread, chain, clock } as WarpOrder);
            for (const one of lives)
              if (
                one?.fence === null &&
                threadOf(one.stamp.chain) === thread &&
                knows(clock, one.stamp)
              )
                one.fence = { chain, time };
          } else if (life === undefined) continue;
          else if (does === 'end') {
            fences.end(life.barrier);
            lives[at] = undefined;
          } else if (does === 'commit') {
            fences.commit(life.barrier, clocks);
            if (!isFenced(life)) areCommitsFenced = false;
            if (!isFenced(life)) unfencedCommits++;
          } else if (does === 'use') {
            const stamp = events.next(chain);
            fences.use(machine, life.barrier, clocks, stamp);
            const isOrdered = knows(clock, life.stamp);
            const isWrong = !isFenced(life) && isOrdered && !life.isReported;
            if (!isFenced(life) && !isOrdered) unordered++;
            if (isWrong) life.isReported = true;
            // A hint is given once a run, a race once a barrier.
            const isTold = isWrong && (model.initialisationFences || told === 0);
            if (isTold) told++;
            const kind = model.initialisationFences ? 'race' : 'unfenced-initialisation';
            expect(reports.map(({ kind: of, cta, stamps }) => ({ of, cta, stamps }))).toEqual(
              isTold ? [{ of: kind, cta: at, stamps: [life.stamp, stamp] }] : [],
            );
            if (isTold && kind === 'race') reported++;
            if (isTold && kind !== 'race') lenient++;
          }
          if (does !== 'use') expect(reports).toEqual([]);
          expect(fences.areCommitsFenced()).toBe(areCommitsFenced);
        }
      },
    ),
    { numRuns: scaled(300) },
  );
  expect(Math.min(reported, lenient, unordered, unfencedCommits)).toBeGreaterThan(0);
});
