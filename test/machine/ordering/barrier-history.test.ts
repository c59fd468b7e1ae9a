import { describe, expect, it } from 'vitest';
import {
  Stamp,
  createBarrierHistory,
  createClock,
  includeInClock,
  joinClock,
  type AccessClocks,
  type AccessKind,
} from '../../../src/machine/ordering/index.js';

/** Events with clocks as they are given, on a barrier whose initialisation is chain 0 at time 1. */
function createScene() {
  const event = (chain: number, time: number, kind: AccessKind = 'arrive') =>
    new Stamp({ chain, time, kind, proxy: 'generic', site: '', who: '', step: 0 });
  const initialisation = event(0, 1);
  return { event, initialisation, history: createBarrierHistory(initialisation) };
}

/** Clocks with the times of chains by number; the second are what the async proxy knows. */
function clocksOf(
  times: Readonly<Record<number, number>>,
  known: Readonly<Record<number, number>> = {},
): AccessClocks {
  const clocks = { clock: createClock(), asyncView: createClock() };
  for (const [chain, time] of Object.entries(times)) includeInClock(clocks.clock, +chain, time);
  for (const [chain, time] of Object.entries(known)) includeInClock(clocks.asyncView, +chain, time);
  return clocks;
}

describe('the history of a barrier', () => {
  it('wants its initialisation before its first arrivals and waits', () => {
    const { event, initialisation, history } = createScene();
    const arrival = event(1, 1);
    const wait = event(2, 1, 'wait');
    expect(history.observe(wait, clocksOf({ 2: 1 }))).toEqual([
      { kind: 'early-wait', phase: -1, event: wait, unordered: initialisation },
    ]);
    expect(history.arrive(arrival, clocksOf({ 1: 1 }))).toEqual([
      { kind: 'arrival', phase: 0, event: arrival, unordered: initialisation },
    ]);
  });

  it('hands on what all events of the last phase knew, and nothing of the current one', () => {
    const { event, history } = createScene();
    history.arrive(event(1, 1), clocksOf({ 0: 1, 1: 1, 5: 7 }, { 5: 6 }));
    history.transact(event(2, 1), clocksOf({ 0: 1, 2: 1, 5: 3 }, { 2: 1 }));
    expect(history.completed).toMatchObject(clocksOf({}));
    expect(history.complete()).toEqual([]);
    expect(history.phase).toBe(1);
    const after = clocksOf({});
    joinClock(after.clock, history.completed.clock);
    joinClock(after.asyncView, history.completed.asyncView);
    expect(after).toEqual(clocksOf({ 0: 1, 1: 1, 2: 1, 5: 7 }, { 2: 1, 5: 6 }));
    history.arrive(event(1, 2), clocksOf({ 0: 1, 1: 2, 2: 1, 9: 9 }));
    expect(history.completed.clock.times[9] ?? 0).toBe(0);
    for (const time of [3, 4]) {
      history.complete();
      history.arrive(event(1, time), clocksOf({ 0: 1, 1: time, 2: 1, 9: 9 }));
    }
    expect(history.completed.clock.times[5]).toBe(0);
    expect(history.completed.asyncView.length).toBe(0);
  });

  it('lets a wait for the phase before the first pass whose warp takes part in phase 0', () => {
    for (const takesPart of [true, false]) {
      const { event, history } = createScene();
      const wait = event(1, 4, 'wait');
      expect(history.observe(wait, clocksOf({ 0: 1, 1: 4 }))).toEqual([]);
      const arrival = event(2, 1);
      history.arrive(arrival, clocksOf({ 0: 1, 1: takesPart ? 4 : 3, 2: 1 }));
      expect(history.complete()).toEqual(
        takesPart ? [] : [{ kind: 'late-wait', phase: -1, event: wait, unordered: arrival }],
      );
      // It is the wait of one phase only.
      history.arrive(event(2, 2), clocksOf({ 0: 1, 2: 2 }));
      expect(history.complete()).toEqual([]);
    }
  });

  it('does not take one commit for another that tracks the same operations', () => {
    const { event, history } = createScene();
    // An MMA at (1, 1), and commits at (2, 1) and (3, 1) to this barrier and to another one.
    const commit = event(2, 1);
    history.arrive(commit, clocksOf({ 0: 1, 1: 1, 2: 1 }));
    history.complete();
    const next = event(4, 1);
    expect(history.arrive(next, clocksOf({ 0: 1, 1: 1, 3: 1, 4: 1 }))).toEqual([
      { kind: 'arrival', phase: 1, event: next, unordered: commit },
    ]);
  });

  it('wants an expect_tx before an arrival of its phase, and lets complete_tx come before both', () => {
    for (const isKnown of [true, false]) {
      const { event, history } = createScene();
      history.transact(event(1, 1), clocksOf({ 0: 1, 1: 1 }));
      const expectation = event(2, 5);
      expect(history.expect(expectation, clocksOf({ 0: 1, 2: 5 }))).toEqual([]);
      const arrival = event(3, 1);
      history.arrive(arrival, clocksOf({ 0: 1, 3: 1, ...(isKnown ? { 2: 5 } : {}) }));
      expect(history.complete()).toEqual(
        isKnown ? [] : [{ kind: 'expectation', phase: 0, event: expectation, unordered: arrival }],
      );
    }
  });

  it('wants phase k − 1 complete before a wait for phase k, even if its warp saw phase k − 2', () => {
    const { event, history } = createScene();
    const arrivals = [1, 2, 3].map((time) => event(1, time));
    for (const [index, arrival] of arrivals.entries()) {
      history.arrive(arrival, clocksOf({ 0: 1, 1: index + 1, 2: index + 1 }));
      if (index === 0) {
        history.complete();
        expect(history.observe(event(2, 1, 'wait'), clocksOf({ 0: 1, 2: 1 }))).toEqual([]);
      } else if (index === 1) history.complete();
    }
    history.complete();
    const wait = event(2, 3, 'wait');
    expect(history.observe(wait, clocksOf({ 0: 1, 1: 1, 2: 3 }))).toEqual([
      { kind: 'early-wait', phase: 2, event: wait, unordered: arrivals[1] },
    ]);
    expect(history.observe(wait, clocksOf({ 0: 1, 1: 2, 2: 3 }))).toEqual([]);
  });
});
