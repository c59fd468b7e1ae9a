import { describe, expect, it } from 'vitest';
import {
  adversarialSchedulers,
  clusterAddress,
  electedLane,
  runCluster,
  type ClusterLaunch,
  type Instruction,
} from '../../src/machine/index.js';
import {
  arrive,
  fragment,
  kindsOf,
  look,
  messagesOf,
  runProgram,
  scheduleNamed,
  wait,
} from './launch.js';

const arrives = { op: 'barrier.cluster.arrive', site: 'cluster: arrives' } as const;
const relaxed = { op: 'barrier.cluster.arrive.relaxed', site: 'cluster: arrives' } as const;
const waits = { op: 'barrier.cluster.wait', site: 'cluster: waits' } as const;
const fence = { op: 'fence.mbarrier_init', site: 'fence' } as const;

/** CTA 0 initialises an mbarrier that CTA 1 arrives on after the meeting. */
function initialisation(meeting: readonly Instruction[]): ClusterLaunch {
  return {
    ctas: 2,
    warps: 1,
    program: function* ({ cta }) {
      if (cta === 0) yield { op: 'mbarrier.init', barrier: 0, count: 1, name: 'full' };
      yield* meeting;
      if (cta === 1)
        yield { op: 'mbarrier.arrive', barrier: clusterAddress(0, 0), lanes: electedLane };
      else yield { op: 'mbarrier.try_wait.parity', barrier: 0, parity: 0 };
    },
  };
}

describe('the barrier of a cluster', () => {
  it('makes an initialisation known, relaxed only with fence.mbarrier_init', () => {
    expect(kindsOf(runCluster(initialisation([arrives, waits])))).toEqual([]);
    expect(kindsOf(runCluster(initialisation([fence, relaxed, waits])))).toEqual([]);
    expect(kindsOf(runCluster(initialisation([relaxed, waits])))).toEqual(['phase']);
    expect(kindsOf(runCluster(initialisation([relaxed, fence, waits])))).toEqual(['phase']);
    for (const scheduler of adversarialSchedulers(1)) {
      const run = runCluster(initialisation([fence, relaxed, waits]), { scheduler });
      expect(messagesOf(run), scheduler.name).toEqual([]);
    }
  });

  it('finds the initialisation unknown without a meeting', () => {
    for (const scheduler of adversarialSchedulers(1))
      expect(kindsOf(runCluster(initialisation([]), { scheduler })).length).toBeGreaterThan(0);
  });

  it('holds the warps of both CTAs, generation after generation', () => {
    for (const scheduler of adversarialSchedulers(2)) {
      const order: number[] = [];
      const run = runProgram(
        {
          ctas: 2,
          warps: Array.from(
            { length: 2 },
            () =>
              function* () {
                for (let generation = 0; generation < 3; generation++) {
                  yield look(fragment(), () => order.push(generation));
                  yield arrives;
                  yield waits;
                }
              },
          ),
        },
        { scheduler },
      );
      expect(messagesOf(run)).toEqual([]);
      expect(order).toEqual([...order].sort());
    }
  });

  it('is arrived at once and then waited for', () => {
    const kinds = (...instructions: Instruction[]) =>
      kindsOf(runProgram({ ctas: 2, warps: [instructions] }));
    expect(kinds(arrives, waits)).toEqual([]);
    expect(kinds(waits)).toEqual(['phase']);
    expect(kinds(arrives, arrives, waits)).toContain('phase');
    expect(kinds(arrives, waits, waits)).toEqual(['phase']);
  });

  it('does not wait for warps that have ended', () => {
    const run = runProgram({
      ctas: 2,
      warps: [({ cta }) => (cta === 0 ? [arrives, waits] : [])],
    });
    expect(messagesOf(run)).toEqual([]);
  });

  it('says who is missing', () => {
    const run = runProgram({
      ctas: 2,
      barriers: { never: 1 },
      warps: [({ cta }) => (cta === 0 ? [arrives, waits] : [wait(0, 0), arrives])],
    });
    expect(messagesOf(run)[0]).toContain(
      'CTA 0 warp 0 at "cluster: waits" waits for the barrier of the cluster with 32 of 64 threads (CTA 0 warp 0)',
    );
  });

  it('does not keep what comes between arrival and wait apart', () => {
    // The arrival on the other CTA lies before the wait: it may come when that CTA has not begun.
    const run = runCluster(
      {
        ctas: 2,
        warps: 1,
        program: function* ({ cta }) {
          if (cta === 0) yield { op: 'mbarrier.init', barrier: 0, count: 1, name: 'full' };
          yield arrives;
          if (cta === 1) yield arrive(0);
          yield waits;
          if (cta === 0) yield { op: 'mbarrier.try_wait.parity', barrier: 0, parity: 0 };
        },
      },
      { scheduler: scheduleNamed('warp 0 first', 1) },
    );
    expect(kindsOf(run)).toEqual(['phase']);
  });
});
