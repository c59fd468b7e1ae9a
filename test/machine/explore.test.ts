import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  delayingScheduler,
  explore,
  recordingScheduler,
  type RunUnder,
  type Step,
} from '../../src/machine/index.js';
import { expectedProduct, runGemm, without, type Change } from './gemm-program.js';
import { data, fragment, look, meet, runProgram, words } from './launch.js';
import { delayLists } from './schedules.js';
import { scaled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

/** A GEMM whose results alone are looked at. */
const gemm =
  (change?: Change, races = false): RunUnder =>
  (scheduler) => {
    const { findings, out } = runGemm({ scheduler, races }, change);
    return { findings, result: out.join() };
  };

/** Warps that each say their name so many times, with nothing between them. */
const talk =
  (warps: number, times: number): RunUnder =>
  (scheduler) => {
    let said = '';
    const { findings } = runProgram(
      {
        warps: Array.from({ length: warps }, (_, warp) =>
          Array.from({ length: times }, () => look(fragment(), () => (said += warp))),
        ),
      },
      { scheduler, races: false },
    );
    return { findings, result: said };
  };

describe('exploration of schedules', () => {
  inTurn('comes to one result of a correct pipeline, without any look at its races', () => {
    const all = explore(gemm(), { delays: 1 });
    expect(all).toMatchObject({ isExhausted: true, firstDifference: null, findings: [] });
    expect(all.results.map(({ value }) => value)).toEqual([expectedProduct.join()]);
    // The schedule in order, and one for each of its decisions that leave a choice.
    expect(all.runs).toBe(1 + all.choices);
    expect(all.choices).toBeGreaterThan(50);
    expect(all.decisions).toBeGreaterThan(all.choices);
  });

  it.each(['operands full: MMA waits', 'operands empty: load waits', 'D full: waits'])(
    'shows that the result depends on "%s", and after how many schedules',
    (site) => {
      const found = explore(gemm(without(site)), { delays: 1, stopsAtDifference: true });
      expect(found.firstDifference).not.toBeNull();
      expect(found.firstDifference!.run).toBe(found.runs);
      // The schedule's name is enough to get it again.
      const delays = [...found.firstDifference!.schedule.matchAll(/\d+/g)].map(Number);
      const again = gemm(without(site))(delayingScheduler(delays));
      expect(again.findings.length > 0 || again.result !== found.results[0].value).toBe(true);
    },
  );

  inTurn('agrees with the races: what one run finds, some schedule shows', () => {
    const site = 'output: read';
    expect(runGemm({}, without(site)).findings.length).toBeGreaterThan(0);
    const found = explore(gemm(without(site)), { delays: 1, stopsAtDifference: true });
    expect(found.results.length).toBe(2);
  });

  it('tries all orders of independent steps once there are delays enough', () => {
    // Two warps that speak twice: six orders.
    const sizes = [0, 1, 2, 3].map((delays) => explore(talk(2, 2), { delays }).results.length);
    expect(sizes[0]).toBe(1);
    expect(sizes).toEqual([...sizes].sort((a, b) => a - b));
    expect(sizes.at(-1)).toBe(6);
  });

  it('tries more with each delay, and nothing twice in the order of delays', () => {
    const seen = new Set<string>();
    const counting: RunUnder = (scheduler) => {
      expect(seen.has(scheduler.name)).toBe(false);
      seen.add(scheduler.name);
      return talk(3, 2)(scheduler);
    };
    const { runs } = explore(counting, { delays: 2 });
    expect(seen.size).toBe(runs);
    expect(runs).toBeGreaterThan(explore(talk(3, 2), { delays: 1 }).runs);
  });

  it('stops after so many runs and says so', () => {
    const { runs: all } = explore(talk(2, 3), { delays: 1 });
    for (const mostRuns of [1, 2, all - 1, all, all + 1]) {
      const found = explore(talk(2, 3), { delays: 1, mostRuns });
      expect(found.runs).toBe(Math.min(mostRuns, all));
      expect(found.isExhausted).toBe(mostRuns >= all);
    }
  });

  it('counts the runs of each result and of each finding', () => {
    const racy: RunUnder = (scheduler) => {
      const { findings } = runProgram(
        { warps: [[words('st.shared', data)], [words('st.shared', data)]] },
        { scheduler },
      );
      return { findings, result: '' };
    };
    const { runs, findings, results, firstDifference } = explore(racy, { delays: 2 });
    expect(runs).toBeGreaterThan(2);
    expect(results).toMatchObject([{ value: '', runs, firstRun: 1 }]);
    expect(firstDifference).toMatchObject({ run: 1 });
    // The race from either side.
    expect(findings.map(({ value }) => value.kind)).toEqual(['race', 'race']);
    expect(findings.reduce((sum, one) => sum + one.runs, 0)).toBe(runs);
  });

  it('refuses what is no bound', () => {
    for (const delays of [-1, 0.5, NaN])
      expect(() => explore(talk(1, 1), { delays })).toThrow(/cannot be explored; pass 0, 1, 2/);
    expect(() => explore(talk(1, 1), { delays: 1, mostRuns: 0 })).toThrow(/pass 1 or more/);
  });
});

describe('schedules as data', () => {
  it('shrink to the one delay that shows the fault', () => {
    // The consumer is not told to wait: in order it happens to come second.
    const run: RunUnder = (scheduler) => {
      const seen: number[] = [];
      const registers = fragment();
      const { findings } = runProgram(
        {
          warps: [
            [words('ld.shared', data, registers), look(registers, ([first]) => seen.push(first))],
            [
              words(
                'st.shared',
                data,
                fragment(1, () => 5),
              ),
              ...[0, 1, 2].map((i) => meet('bar.sync', i, 1)),
            ],
          ],
        },
        { scheduler, races: false },
      );
      return { findings, result: seen.join() };
    };
    const base = recordingScheduler(delayingScheduler([]));
    expect(run(base).result).toBe('5');
    const law = fc.property(
      delayLists(base.choices.length),
      (delays) => run(delayingScheduler(delays)).result === '5',
    );
    const { failed, counterexample } = fc.check(law, { seed: 1, numRuns: 1000 });
    expect(failed).toBe(true);
    expect(counterexample![0]).toHaveLength(1);
  });

  it('hold back one step after the other, and then begin again with the first', () => {
    const steps = [0, 1, 2].map((index) => ({ chosenAs: 'warp', index }) as unknown as Step);
    for (let delays = 0; delays < 9; delays++)
      expect(delayingScheduler(Array<number>(delays).fill(0)).choose(steps)).toBe(delays % 3);
  });

  it('change no result of a correct pipeline', () => {
    const base = recordingScheduler(delayingScheduler([]));
    const { result } = gemm()(base);
    fc.assert(
      fc.property(
        delayLists(base.choices.length),
        (delays) => gemm()(delayingScheduler(delays)).result === result,
      ),
      { numRuns: scaled(20) },
    );
  });
});
