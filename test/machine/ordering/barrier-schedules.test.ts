import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { barrierViolationKinds } from '../../../src/machine/ordering/index.js';
import { findDeviation, makeRun, violationsOf, type Choice } from './barrier-runs.js';
import { scaled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** Events in the order of a run, on barriers that expect so many arrivals each. */
interface Plan {
  readonly choices: readonly Choice[];
  readonly counts: readonly number[];
}

const agents = 3;
const [full, empty] = [0, 1];
const anything: Choice['does'][] = ['arrive', 'wait', 'wait', 'load', 'late-load', 'land', 'land'];

function choice(does: readonly Choice['does'][]): fc.Arbitrary<Choice> {
  return fc.record({
    agent: fc.nat(agents - 1),
    does: fc.constantFrom(...does),
    barrier: fc.nat(1),
  });
}

function anyPlan(does: readonly Choice['does'][]): fc.Arbitrary<Plan> {
  return fc.record({
    choices: fc.array(choice(does), { maxLength: 14, size: 'max' }),
    counts: fc.array(fc.integer({ min: 1, max: 2 }), { minLength: 1, maxLength: 2 }),
  });
}

/** One buffer that a producer fills and consumers empty, time and again, as kernels do. */
function pipeline(rounds: number, consumers: number, isLoaded: boolean): Choice[] {
  const everyConsumer = (does: Choice['does'], barrier: number): Choice[] =>
    Array.from({ length: consumers }, (_, index) => ({ agent: 1 + index, does, barrier }));
  return Array.from({ length: rounds }, (): Choice[] => [
    { agent: 0, does: 'wait', barrier: empty },
    { agent: 0, does: isLoaded ? 'load' : 'arrive', barrier: full },
    ...(isLoaded ? [{ agent: 0, does: 'land', barrier: full } as const] : []),
    ...everyConsumer('wait', full),
    ...everyConsumer('arrive', empty),
  ]).flat();
}

/** A pipeline with some of its events left out, moved or added. */
const damagedPipeline: fc.Arbitrary<Plan> = fc
  .record({
    rounds: fc.integer({ min: 2, max: 4 }),
    consumers: fc.integer({ min: 1, max: 2 }),
    isLoaded: fc.boolean(),
    changes: fc.array(
      fc.record({
        at: fc.nat(40),
        moved: fc.option(fc.nat(40)),
        added: fc.option(choice(anything)),
      }),
      { maxLength: 2 },
    ),
  })
  .map(({ rounds, consumers, isLoaded, changes }) => {
    const choices = pipeline(rounds, consumers, isLoaded);
    for (const { at, moved, added } of changes) {
      const place = at % choices.length;
      if (added !== null) choices.splice(place, 0, added);
      else {
        const [taken] = choices.splice(place, 1);
        if (moved !== null) choices.splice(moved % (choices.length + 1), 0, taken!);
      }
    }
    return { choices, counts: [1, consumers] };
  });

describe('violations of the barriers of one run, against all its schedules', () => {
  inTurn.each([
    ['arrivals and waits', anyPlan(['arrive', 'wait', 'wait'])],
    ['transfers too', anyPlan(anything)],
    ['a damaged pipeline', damagedPipeline],
  ])('are there exactly if some schedule has other phases or a deadlock: %s', (_name, plans) => {
    fc.assert(
      fc.property(plans, ({ choices, counts }) => {
        const events = makeRun(choices, agents, counts);
        const violations = violationsOf(events, agents, counts);
        const deviation = findDeviation(events, counts);
        expect({ isFixed: violations.length === 0, deviation }).toEqual({
          isFixed: deviation === null,
          deviation,
        });
      }),
      { numRuns: scaled(400) },
    );
  });

  it('are none in pipelines as they should be', () => {
    for (const consumers of [1, 2])
      for (const isLoaded of [false, true]) {
        const counts = [1, consumers];
        const events = makeRun(pipeline(5, consumers, isLoaded), agents, counts);
        expect(Math.max(...events.map(({ phase }) => phase))).toBe(4);
        expect(violationsOf(events, agents, counts)).toEqual([]);
      }
  });

  it('are of all kinds, and absent often enough, in the runs that are tried', () => {
    const kinds = new Set<string>();
    let fixed = 0;
    for (const { choices, counts } of fc.sample(fc.oneof(anyPlan(anything), damagedPipeline), {
      numRuns: 1000,
      seed: 1,
    })) {
      const events = makeRun(choices, agents, counts);
      const violations = violationsOf(events, agents, counts);
      for (const { kind } of violations) kinds.add(kind);
      const waits = events.filter(({ does, phase }) => does === 'wait' && phase >= 1);
      if (violations.length === 0 && waits.length > 0) fixed++;
    }
    expect(kinds).toEqual(new Set(Object.keys(barrierViolationKinds)));
    expect(fixed).toBeGreaterThan(100);
  });
});
