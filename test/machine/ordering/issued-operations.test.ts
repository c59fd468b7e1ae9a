import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  clockTime,
  copyClock,
  createClock,
  includeInClock,
  memoryModels,
  type Chains,
  type Clock,
  type Stamp,
} from '../../../src/machine/ordering/index.js';
import { operationKinds, type OperationKind } from '../../../src/machine/ordering/memory-model.js';
import {
  beginOperation,
  createAccessRecorder,
} from '../../../src/machine/ordering/operation-order.js';
import type {
  Actor,
  OperationOrder,
  OrderedRun,
  WarpOrder,
} from '../../../src/machine/ordering/order-tracker.js';
import { scaled } from '../../setup/effort.js';

/** The chains of warps and of earlier operations; the next one is that of the operation. */
const chainCount = 5;
/** Where the operation itself is. */
const own = { chain: chainCount, time: 9 };

const times = fc.array(fc.nat(6), { minLength: chainCount, maxLength: chainCount });

function clockOf(of: readonly number[]): Clock {
  const clock = createClock();
  of.forEach((time, chain) => time > 0 && includeInClock(clock, chain, time));
  return clock;
}

/** The times of a clock, the operation's own chain among them. */
const timesOf = (clock: Clock | null) =>
  clock === null
    ? null
    : Array.from({ length: chainCount + 2 }, (_, chain) => clockTime(clock, chain));

/** All events of some clocks. */
const union = (...clocks: readonly (readonly number[])[]) =>
  Array.from({ length: chainCount + 2 }, (_, chain) =>
    Math.max(0, ...clocks.map((c) => c[chain] ?? 0)),
  );

const views = fc.record({ clock: times, asyncView: times, tensor: times, happened: times });
const kinds = Object.keys(operationKinds) as OperationKind[];

it('an operation comes after what its kind takes from its warp, and after its predecessors', () => {
  fc.assert(
    fc.property(
      fc.record({
        kind: fc.constantFrom(...kinds),
        model: fc.constantFrom(memoryModels.practice, memoryModels.ptx),
        warp: views,
        operations: views,
        predecessors: fc.array(fc.option(views), { maxLength: 3 }),
        writes: fc.array(fc.nat(5), { maxLength: 2 }),
      }),
      ({ kind, model, warp, operations, predecessors, writes }) => {
        const order = {
          clock: clockOf(warp.clock),
          asyncView: clockOf(warp.asyncView),
          tensorView: clockOf(warp.tensor),
          happened: clockOf(warp.happened),
          tensorOperations: {
            clock: clockOf(operations.clock),
            asyncView: clockOf(operations.asyncView),
          },
          writeChains: writes.map((time, i) => ({ chain: chainCount + i, time })),
        } as unknown as WarpOrder;
        const starts: Clock[] = [];
        let agents = 0;
        const chains: Chains = {
          count: chainCount,
          createAgent: () => chainCount + agents++,
          begin: (start) => {
            starts.push(copyClock(start));
            return own;
          },
        };
        const before = predecessors.map((one) =>
          one === null
            ? null
            : ({
                clock: clockOf(one.clock),
                asyncView: clockOf(one.asyncView),
                tensorClock: clockOf(one.tensor),
                happened: clockOf(one.happened),
              } as unknown as OperationOrder),
        );
        const found = beginOperation(chains, model, order, {
          kind,
          name: 'name',
          site: 'site',
          predecessors: before,
        });

        const earlier = predecessors.filter((one) => one !== null);
        const all = (view: keyof typeof warp) => earlier.map((one) => one[view]);
        const { takesTensorFences, isCommitted, proxy } = operationKinds[kind];
        const isFenced = model.tensorFences && takesTensorFences;
        const isCommit = kind === 'commit';
        const isCopyArrival = kind === 'lane-copy-arrival';
        const isWrite = kind === 'bulk-write';
        // A commit makes known what it tracks, and the arrival of copies nothing of its warp.
        const ofWarp = (view: 'clock' | 'asyncView') =>
          isCommit ? operations[view] : isCopyArrival ? [] : warp[view];
        const start = union(ofWarp('clock'), ...all('clock'));
        const ofTensor = union(warp.tensor, ...all('tensor'));
        const time = isWrite ? (writes[0] ?? 0) + 1 : own.time;
        const itself = union();
        itself[own.chain] = time;
        const clock = isWrite ? start : union(start, itself);
        expect(timesOf(found.clock)).toEqual(clock);
        expect(timesOf(found.tensorClock)).toEqual(isFenced ? union(ofTensor, itself) : clock);
        // Copies of lanes are known to the async proxy where the model needs no fence for them.
        const isKnown = kind === 'lane-copy' && !model.copyFences;
        const asyncView = union(ofWarp('asyncView'), ...all('asyncView'), isKnown ? itself : []);
        expect(timesOf(found.asyncView)).toEqual(asyncView);
        const inTime = isCommit || isCopyArrival ? warp.clock : [];
        expect(timesOf(found.happened)).toEqual(union(warp.happened, inTime, ...all('happened')));
        expect(timesOf(found.issued)).toEqual(
          isCommit || isCopyArrival ? union(warp.clock) : timesOf(found.clock),
        );
        expect(timesOf(found.tracked)).toEqual(isCommit ? union(operations.clock) : null);
        const { chain, name, site, isInWriteChain } = found;
        expect({ chain, time: found.time, name, site, isInWriteChain, proxy: found.proxy }).toEqual(
          {
            chain: own.chain,
            time,
            name: 'name',
            site: 'site',
            isInWriteChain: isWrite,
            proxy,
          },
        );
        // Its chain has no event that one of its clocks lacks.
        const common = start.map((x, c) => (isFenced ? Math.min(x, ofTensor[c]) : x));
        expect(starts.map(timesOf)).toEqual(isWrite ? [] : [common]);
        expect(agents).toBe(isWrite && writes.length === 0 ? 1 : 0);
        const [first, second] = writes;
        expect(order.writeChains.map((one) => one.time)).toEqual(
          isWrite
            ? [time, ...(second === undefined ? [] : [second])]
            : [first, second].filter((x) => x !== undefined),
        );
        // Only what a commit tracks is remembered for it.
        const remembered = (view: 'clock' | 'asyncView', of: Clock) =>
          union(operations[view], isCommitted ? timesOf(of)! : []);
        expect(timesOf(order.tensorOperations.clock)).toEqual(remembered('clock', found.clock));
        expect(timesOf(order.tensorOperations.asyncView)).toEqual(
          remembered('asyncView', found.asyncView),
        );
        // The warp's own clocks are as they were.
        expect(
          [order.clock, order.asyncView, order.tensorView, order.happened].map(timesOf),
        ).toEqual([warp.clock, warp.asyncView, warp.tensor, warp.happened].map((x) => union(x)));
      },
    ),
    { numRuns: scaled(300) },
  );
});

it('accesses are one event where they are of one instruction or operation, of one kind, proxy and scope', () => {
  const access = fc.record({
    chain: fc.nat(1),
    time: fc.integer({ min: 1, max: 2 }),
    step: fc.nat(1),
    isOperation: fc.boolean(),
    kind: fc.constantFrom('read' as const, 'write' as const),
    proxy: fc.constantFrom('generic' as const, 'async' as const),
    scope: fc.constantFrom(undefined, 'cta' as const, 'gpu' as const),
    repeats: fc.constantFrom(undefined, false, true),
  });
  // Each is done several times, so that many follow one that is the same.
  const accesses = fc
    .array(fc.tuple(access, fc.constantFrom(null, 'step', 'kind', 'time', 'scope', 'repeats')), {
      maxLength: 20,
    })
    .map((drawn) =>
      drawn.flatMap(([one, changed]) => {
        const other = {
          step: { step: 1 - one.step },
          kind: { kind: one.kind === 'read' ? ('write' as const) : ('read' as const) },
          time: { time: 3 - one.time },
          scope: { scope: one.scope === 'cta' ? ('gpu' as const) : ('cta' as const) },
          repeats: { repeats: one.repeats !== true },
        };
        return [one, { ...one, ...(changed === null ? {} : other[changed]) }];
      }),
    );
  let alike = 0;
  fc.assert(
    fc.property(accesses, (drawn) => {
      const record = createAccessRecorder();
      let last: { one: (typeof drawn)[number]; stamp: Stamp } | null = null;
      for (const one of drawn) {
        const { chain, time, step, isOperation, kind, proxy, scope, repeats } = one;
        const clock = createClock();
        includeInClock(clock, chain, time);
        const warp = {
          name: 'warp',
          cta: { number: 6 },
          current: { op: 'bar.sync', site: 'of the warp' },
          order: { chain, clock },
        };
        const order = isOperation ? { chain, time, name: 'mma', site: 'of the operation' } : null;
        const actor = { warp, order } as unknown as Actor;
        const stamp = record({ step } as OrderedRun, actor, { kind, proxy, scope, repeats });
        const isSame =
          last !== null &&
          (['chain', 'time', 'kind', 'proxy', 'scope'] as const).every(
            (k) => last!.one[k] === one[k],
          ) &&
          (last.one.repeats === true) === (repeats === true) &&
          (isOperation || last.stamp.step === step);
        expect(stamp === last?.stamp).toBe(isSame);
        if (isSame) alike++;
        else
          expect(stamp).toMatchObject({
            chain,
            time,
            kind,
            proxy,
            step,
            site: isOperation ? 'of the operation' : 'of the warp',
            who: isOperation ? 'mma of warp' : 'warp',
            cta: 6,
            strength: scope === undefined ? 0 : scope === 'cta' ? 1 : 2,
            repeats: repeats === true,
          });
        last = { one, stamp };
      }
    }),
    { numRuns: scaled(200) },
  );
  expect(alike).toBeGreaterThan(0);
});
