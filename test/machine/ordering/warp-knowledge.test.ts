import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  clockTime,
  createFindingCollector,
  includeInClock,
  memoryModels,
  type Clock,
} from '../../../src/machine/ordering/index.js';
import { operationKinds, type OperationKind } from '../../../src/machine/ordering/memory-model.js';
import type {
  OrderedCta,
  OrderedRun,
  OrderedWarp,
  OrderTracker,
  WarpOrder,
} from '../../../src/machine/ordering/order-tracker.js';
import { createOrderTracker } from '../../../src/machine/ordering/track-order.js';
import { scaled } from '../../setup/effort.js';

const chainCount = 9;
const timesOf = (clock: Clock) =>
  Array.from({ length: chainCount }, (_, chain) => clockTime(clock, chain));
const union = (...clocks: readonly (readonly number[])[]) =>
  Array.from({ length: chainCount }, (_, chain) => Math.max(0, ...clocks.map((c) => c[chain])));

/** What a warp knows, by the way in which it knows it. */
const views = [
  'clock',
  'happened',
  'asyncView',
  'tensorView',
  'unfenced',
  'published',
  'operations',
  'operationsAsync',
  'observed',
  'observedAsync',
] as const;
type View = (typeof views)[number];
type Known = Readonly<Record<View, readonly number[]>>;

function clocksOf(order: WarpOrder): Record<View, Clock> {
  const { clock, happened, asyncView, tensorView, unfenced, published } = order;
  return {
    clock,
    happened,
    asyncView,
    tensorView,
    unfenced,
    published,
    operations: order.tensorOperations.clock,
    operationsAsync: order.tensorOperations.asyncView,
    observed: order.observed.clock,
    observedAsync: order.observed.asyncView,
  };
}

const mapViews = (of: (view: View) => readonly number[]): Known =>
  Object.fromEntries(views.map((view) => [view, of(view)])) as unknown as Known;

function knownTo(order: WarpOrder): Known {
  const clocks = clocksOf(order);
  return mapViews((view) => timesOf(clocks[view]));
}

/** Times of four chains, in each of the views. */
const knowledge = fc.array(fc.array(fc.nat(6), { minLength: 4, maxLength: 4 }), {
  minLength: views.length,
  maxLength: views.length,
});
const model = fc.constantFrom(memoryModels.practice, memoryModels.ptx);

/** Lets a warp know more than it does. */
function teach(order: WarpOrder, drawn: readonly (readonly number[])[]): void {
  const clocks = clocksOf(order);
  views.forEach((view, i) =>
    drawn[i].forEach((time, chain) => includeInClock(clocks[view], chain, time)),
  );
}

const cta = (rank: number) =>
  ({ rank, number: rank, warps: [], shared: { limitBytes: 64 } }) as unknown as OrderedCta;

/** A warp that knows what is drawn. */
function drawnWarp(tracker: OrderTracker, drawn: readonly (readonly number[])[], of = cta(0)) {
  const order = tracker.createWarp();
  teach(order, drawn);
  return { name: `warp ${order.chain}`, cta: of, current: null, order } satisfies OrderedWarp;
}

/** The knowledge of an agent that has ticked. */
const ticked = (known: Known, chain: number): Known => ({
  ...known,
  clock: known.clock.map((time, c) => (c === chain ? time + 1 : time)),
});

it('lanes that diverge know what their warp knows, and the warp learns what they know when they converge', () => {
  fc.assert(
    fc.property(model, knowledge, knowledge, knowledge, (memoryModel, first, second, third) => {
      const tracker = createOrderTracker(memoryModel, [{ shared: cta(0).shared }]);
      const warp = drawnWarp(tracker, first);
      const before = knownTo(warp.order);
      const strands = [0, 1].map(() => tracker.divergeWarp(warp));
      expect(strands.map(({ chain, thread }) => [chain, thread])).toEqual([
        [1, 0],
        [2, 0],
      ]);
      // Each has ticked, and the warp for each of them.
      expect(knownTo(strands[0])).toEqual(ticked(before, 1));
      expect(knownTo(strands[1])).toEqual(ticked(ticked(before, 0), 2));
      expect(knownTo(warp.order)).toEqual(ticked(ticked(before, 0), 0));
      teach(strands[0], second);
      teach(strands[1], third);
      const known = [warp.order, ...strands].map(knownTo);
      strands[0].writeChains.push({ chain: 7, time: 3 });
      strands[1].writeChains.push({ chain: 8, time: 1 });
      for (const order of strands) tracker.convergeWarp(warp, { ...warp, order });
      const whole = mapViews((view) => union(...known.map((one) => one[view])));
      expect(knownTo(warp.order)).toEqual(whole);
      // The next lanes to diverge go on in the chains of those before.
      expect(warp.order.strandChains).toEqual([1, 2]);
      const next = tracker.divergeWarp(warp);
      expect([next.chain, next.thread, next.writeChains]).toEqual([2, 0, [{ chain: 8, time: 1 }]]);
      expect(warp.order.writeChains).toEqual([{ chain: 7, time: 3 }]);
      expect(knownTo(next)).toEqual(ticked(whole, 2));
      const inner = tracker.divergeWarp({ ...warp, order: next });
      expect([inner.chain, inner.thread, inner.writeChains]).toEqual([
        3,
        0,
        [{ chain: 8, time: 1 }],
      ]);
      expect(next.writeChains).toEqual([]);
      tracker.convergeWarp({ ...warp, order: next }, { ...warp, order: inner });
      tracker.convergeWarp(warp, { ...warp, order: next });
      expect(warp.order.strandChains).toEqual([1, 2, 3]);
      expect(warp.order.writeChains.map(({ chain }) => chain)).toEqual([7, 8]);
    }),
    { numRuns: scaled(60) },
  );
});

it('a warp that learns of the end of an operation, and a fence, add to the views that are theirs', () => {
  const fences = [
    'before_thread_sync',
    'after_thread_sync',
    'mbarrier_init',
    'proxy.async',
  ] as const;
  const kinds = Object.keys(operationKinds) as OperationKind[];
  fc.assert(
    fc.property(
      model,
      knowledge,
      knowledge,
      fc.constantFrom(...kinds),
      (memoryModel, first, second, kind) => {
        const tracker = createOrderTracker(memoryModel, [{ shared: cta(0).shared }]);
        const issuer = drawnWarp(tracker, first);
        const known = knownTo(issuer.order);
        const operation = tracker.begin(issuer, kind, [], []);
        expect(timesOf(issuer.order.clock)).toEqual(ticked(known, 0).clock);
        const other = drawnWarp(tracker, second);
        const before = knownTo(other.order);
        tracker.finish(other, kind, operation);
        const { takesTensorFences } = operationKinds[kind];
        const isFenced = memoryModel.tensorFences && takesTensorFences;
        const [ofClock, ofTensor, ofAsync, inTime] = [
          operation.clock,
          operation.tensorClock,
          operation.asyncView,
          operation.happened,
        ].map(timesOf);
        const itself = union();
        if (operation.isInWriteChain) itself[operation.chain] = operation.time;
        const after = {
          ...before,
          clock: isFenced ? before.clock : union(before.clock, ofClock, itself),
          tensorView: isFenced ? union(before.tensorView, ofTensor) : before.tensorView,
          unfenced: isFenced ? union(before.unfenced, ofClock) : before.unfenced,
          asyncView: union(before.asyncView, ofAsync),
          happened: union(before.happened, inTime),
        };
        expect(knownTo(other.order)).toEqual(after);
        for (const fence of fences) {
          const now = knownTo(other.order);
          tracker.fence(other, fence);
          const joined = {
            before_thread_sync: { clock: union(now.clock, now.unfenced) },
            after_thread_sync: { tensorView: union(now.tensorView, now.clock) },
            mbarrier_init: { published: union(now.published, now.clock) },
            'proxy.async': { asyncView: union(now.asyncView, now.clock) },
          }[fence];
          expect(knownTo(other.order)).toEqual(ticked({ ...now, ...joined }, other.order.chain));
        }
      },
    ),
    { numRuns: scaled(120) },
  );
});

it('operations that are one come after the predecessors of all', () => {
  fc.assert(
    fc.property(fc.array(knowledge, { minLength: 1, maxLength: 3 }), (drawn) => {
      const tracker = createOrderTracker(memoryModels.practice, [{ shared: cta(0).shared }]);
      const orders = drawn.map((known) =>
        tracker.begin(drawnWarp(tracker, known), 'wgmma', [], []),
      );
      const united = (['clock', 'asyncView', 'happened'] as const).map((view) =>
        union(...orders.map((order) => timesOf(order[view]))),
      );
      tracker.unite(orders);
      for (const { clock, asyncView, happened } of orders)
        expect([clock, asyncView, happened].map(timesOf)).toEqual(united);
    }),
    { numRuns: scaled(60) },
  );
});

it('an operation reaches the CTAs that it is said to, and a late commit is its own CTA’s alone', () => {
  const ctas = [0, 1].map(cta);
  for (const kind of ['bulk-load', 'commit'] as const) {
    const tracker = createOrderTracker(memoryModels.practice, ctas);
    const nothing = views.map(() => [0, 0, 0, 0]);
    const [warp, other] = ctas.map((of) => drawnWarp(tracker, nothing, of));
    const mma = tracker.begin(warp, 'mma', [], []);
    const current = { op: 'trap', site: 'here' } as unknown as OrderedWarp['current'];
    tracker.begin({ ...warp, current }, kind, [], ctas);
    tracker.finish(warp, 'mma', mma);
    tracker.finish(other, 'mma', mma);
    const findings = createFindingCollector();
    const run = {
      ctas: [warp, other].map((one) => ({ ...one.cta, warps: [one] })),
      findings,
      step: 5,
    };
    // The same CTAs, now with their warps.
    run.ctas.forEach((one, i) => Object.assign(ctas[i], one));
    tracker.end({ ...run, ctas } as unknown as OrderedRun);
    const kinds =
      kind === 'commit'
        ? ['stray-commit', 'unfinished-operation']
        : ['unfinished-operation', 'unfinished-operation'];
    expect(findings.list().map((one) => [one.kind, one.cta])).toEqual(
      kinds.map((of, rank) => [of, rank]),
    );
    for (const { accesses } of findings.list())
      expect(accesses).toEqual([{ who: 'trap of warp 0', site: 'here', step: 5 }]);
  }
});
