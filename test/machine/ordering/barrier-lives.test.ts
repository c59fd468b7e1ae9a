import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  createClock,
  createFindingCollector,
  memoryModels,
  type Clock,
  type Stamp,
} from '../../../src/machine/ordering/index.js';
import { createMbarrier, type Mbarrier } from '../../../src/machine/ordering/barriers.js';
import { createBarrierLives, createCtaReach } from '../../../src/machine/ordering/lifetimes.js';
import type {
  OperationOrder,
  OrderedCta,
  OrderedRun,
  WarpOrder,
} from '../../../src/machine/ordering/order-tracker.js';
import { scaled } from '../../setup/effort.js';
import {
  chainCount,
  Events,
  knowledge,
  knows,
  lastOfChains,
  recordedFindings,
} from './drawn-events.js';

const machine = {} as OrderedRun;
const model = fc.constantFrom(memoryModels.practice, memoryModels.ptx);
/** The operations that a commit tracks, as knowledge of them; null for what is no commit, none for one that tracks nothing. */
const tracked = fc.oneof(fc.constantFrom(null, 'none' as const), knowledge);

/** Whether all events of one clock are in another. */
const isWithin = (part: Clock, whole: Clock): boolean =>
  part.times.every((time, chain) => time <= (whole.times[chain] ?? 0));

/** Whether a commit may be late: it tracks something, all of which is known, and the model lets it. */
function isLate(lastCommits: boolean, tracks: Clock | null, known: Clock): boolean {
  return !lastCommits && tracks !== null && tracks.length > 0 && isWithin(tracks, known);
}

const act = fc.record({
  does: fc.constantFrom('begin', 'event', 'event', 'event', 'end'),
  barrier: fc.nat(2),
  chain: fc.nat(chainCount - 1),
  known: knowledge,
  happened: fc.option(knowledge),
  tracked,
});

it('a barrier ends after all that happens at it, and the next one at its place begins after its end', () => {
  let [phases, strays, begins] = [0, 0, 0];
  fc.assert(
    fc.property(model, fc.array(act, { maxLength: 40, size: 'max' }), (memoryModel, acts) => {
      const { findings, reports } = recordedFindings();
      const lives = createBarrierLives(memoryModel, findings);
      const events = new Events();
      // Of three places, one in another CTA and one at another byte.
      const places = [
        [0, 8],
        [1, 8],
        [0, 16],
      ] as const;
      const alive: (Mbarrier | undefined)[] = [];
      const atBarrier = places.map((): { stamp: Stamp; tracks: Clock | null }[] => []);
      const ends: (Stamp | undefined)[] = [];
      for (const { does, barrier: at, chain, known, happened, tracked: tracks } of acts) {
        const clock = events.clock(known);
        const inTime = happened === null ? undefined : events.clock(happened);
        const clocks = {
          clock,
          asyncView: createClock(),
          ...(inTime === undefined ? {} : { happened: inTime }),
        };
        const barrier = alive[at];
        reports.length = 0;
        const [cta, offset] = places[at];
        if (does === 'begin' && barrier === undefined) {
          const next = createMbarrier(`barrier ${at}`, cta, offset, 1);
          const stamp = events.next(chain);
          lives.begin(machine, clocks, next, stamp);
          const end = ends[at];
          // What has only happened is not known: memory is written here.
          const isWrong = end !== undefined && !knows(clock, end);
          expect(reports.map(({ kind, stamps }) => ({ kind, stamps }))).toEqual(
            isWrong ? [{ kind: 'phase', stamps: [end, stamp] }] : [],
          );
          begins += reports.length;
          alive[at] = next;
          atBarrier[at] = [{ stamp, tracks: null }];
        } else if (does === 'event' && barrier !== undefined) {
          const stamp = events.next(chain);
          const ofCommit =
            tracks === null ? null : tracks === 'none' ? createClock() : events.clock(tracks);
          const order = { tracked: ofCommit } as unknown as OperationOrder;
          if (tracks === null && at === 0) lives.remember(barrier, stamp);
          else lives.remember(barrier, stamp, order);
          atBarrier[at].push({ stamp, tracks: ofCommit });
        } else if (does === 'end' && barrier !== undefined) {
          const stamp = events.next(chain);
          lives.end(machine, clocks, barrier, stamp);
          const missed = lastOfChains(atBarrier[at]).filter(
            (one) =>
              !knows(clock, one.stamp) && !(inTime !== undefined && knows(inTime, one.stamp)),
          );
          expect(reports.map(({ kind, cta: of, stamps }) => ({ kind, of, stamps }))).toEqual(
            missed.map((one) => ({
              kind: isLate(memoryModel.lastCommits, one.tracks, clock) ? 'stray-commit' : 'phase',
              of: cta,
              stamps: [one.stamp, stamp],
            })),
          );
          strays += reports.filter(({ kind }) => kind === 'stray-commit').length;
          phases += reports.filter(({ kind }) => kind === 'phase').length;
          alive[at] = undefined;
          ends[at] = stamp;
        }
        for (const { message } of reports) expect(message.startsWith(`barrier ${at}: `)).toBe(true);
      }
    }),
    { numRuns: scaled(300) },
  );
  expect(Math.min(phases, strays, begins)).toBeGreaterThan(0);
});

const reachAct = fc.record({
  cta: fc.nat(1),
  chain: fc.nat(chainCount - 1),
  kind: fc.constantFrom('commit' as const, 'bulk-load' as const, 'arrival' as const),
  tracked: fc.option(tracked, { nil: undefined }),
});
const warpKnowledge = fc.record({ clock: knowledge, happened: knowledge, unfenced: knowledge });

it('a CTA ends after all that reaches it, as its warps together know', () => {
  const kinds = new Set<string>();
  fc.assert(
    fc.property(
      model,
      fc.array(reachAct, { maxLength: 12, size: 'max' }),
      fc.array(fc.array(warpKnowledge, { maxLength: 2 }), { minLength: 2, maxLength: 2 }),
      (memoryModel, acts, known) => {
        const events = new Events();
        const reach = createCtaReach(memoryModel);
        const ctas: { rank: number; warps: { order: WarpOrder }[] }[] = [0, 1].map((rank) => ({
          rank,
          warps: [],
        }));
        const added = acts.map(({ cta, chain, kind, tracked: tracks }) => {
          const stamp = events.next(chain);
          const ofCommit =
            tracks === 'none' ? createClock() : Array.isArray(tracks) ? events.clock(tracks) : null;
          const who = `operation ${stamp.step}`;
          const { time, site } = stamp;
          const to = ctas[cta] as unknown as OrderedCta;
          reach.add({ cta: to, chain, time, kind, tracked: ofCommit, who, site });
          return { cta, kind, tracks: ofCommit, who, stamp };
        });
        known.forEach((ofWarps, rank) =>
          ofWarps.forEach(({ clock, happened, unfenced }) => {
            const order = {
              clock: events.clock(clock),
              happened: events.clock(happened),
              unfenced: events.clock(unfenced),
            } as unknown as WarpOrder;
            ctas[rank].warps.push({ order });
          }),
        );
        const findings = createFindingCollector();
        reach.checkEnds({ ctas, findings, step: 77 } as unknown as OrderedRun);
        const expected = [0, 1].flatMap((rank) => {
          const clocks = ctas[rank].warps.flatMap(({ order }) => [
            order.clock,
            order.happened,
            order.unfenced,
          ]);
          const whole = createClock();
          for (const { times } of clocks)
            times.forEach(
              (time, chain) => (whole.times[chain] = Math.max(whole.times[chain], time)),
            );
          const missed = lastOfChains(added.filter(({ cta }) => cta === rank)).filter(
            ({ stamp }) => !knows(whole, stamp),
          );
          return missed.map(({ kind, tracks, who, stamp }) => {
            const usual = kind === 'arrival' ? 'exited-cta' : 'unfinished-operation';
            return {
              kind: isLate(memoryModel.lastCommits, tracks, whole) ? 'stray-commit' : usual,
              message: `CTA ${rank} may end before ${who} (${stamp.site}) is done with it`,
              cta: rank,
              step: 77,
              accesses: [{ who, site: stamp.site, step: 77 }],
              count: 1,
            };
          });
        });
        expect(findings.list()).toEqual(expected);
        for (const { kind } of expected) kinds.add(kind);
      },
    ),
    { numRuns: scaled(300) },
  );
  expect([...kinds].sort()).toEqual(['exited-cta', 'stray-commit', 'unfinished-operation']);
});
