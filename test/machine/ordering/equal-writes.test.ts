import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  Stamp,
  createChains,
  createClock,
  createShadowMemory,
  joinClock,
  tickClock,
} from '../../../src/machine/ordering/index.js';
import { scaled } from '../../setup/effort.js';

/** What an agent does to one word, or to a channel: a wait is for the signal, which lets it know what came before. */
type Step =
  | { readonly do: 'write'; readonly value: number }
  | { readonly do: 'read' }
  | { readonly do: 'signal' | 'wait'; readonly channel: number };
/** The steps of each agent. */
type Program = readonly (readonly Step[])[];

const words = 2;

/** What a run shows: the values that each agent has read, and the last one. */
interface Outcome {
  readonly values: string;
  readonly conflicts: number;
}

/** Runs a program; `choose` takes one of the agents that can go on. Null where none can and some have not ended. */
function run(
  program: Program,
  choose: (ready: readonly number[]) => number,
  equalWrites: boolean,
): Outcome | null {
  const memory = createShadowMemory(words, { equalWrites });
  memory.initialise({ start: 0, count: words });
  const chains = createChains();
  const agents = program.map(() => {
    const chain = chains.createAgent();
    const clock = createClock();
    tickClock(clock, chain);
    return { chain, clock, next: 0, seen: [] as number[] };
  });
  const signalled = new Map<number, ReturnType<typeof createClock>>();
  let [value, conflicts] = [0, 0];
  const stepOf = (agent: number): Step | undefined => program[agent][agents[agent].next];
  for (let at = 0; ; at++) {
    const ready = agents.flatMap((_, agent) => {
      const step = stepOf(agent);
      return step === undefined || (step.do === 'wait' && !signalled.has(step.channel))
        ? []
        : [agent];
    });
    if (ready.length === 0) break;
    const agent = choose(ready);
    const { chain, clock, seen } = agents[agent];
    const step = stepOf(agent)!;
    agents[agent].next++;
    if (step.do === 'signal') {
      const sent = signalled.get(step.channel) ?? createClock();
      joinClock(sent, clock);
      signalled.set(step.channel, sent);
      tickClock(clock, chain);
    } else if (step.do === 'wait') {
      joinClock(clock, signalled.get(step.channel)!);
      tickClock(clock, chain);
    } else {
      const kind = step.do;
      const repeats = step.do === 'write' && step.value === value;
      const stamp = new Stamp({
        chain,
        time: clock.times[chain],
        kind,
        repeats,
        proxy: 'generic',
        site: `step ${at}`,
        who: `agent ${agent}`,
        step: at,
      });
      const clocks = { clock, asyncView: createClock() };
      const found = memory[kind]({ start: 0, count: 1 }, stamp, clocks);
      conflicts += found.filter(({ missing }) => missing !== null).length;
      if (step.do === 'write') value = step.value;
      else seen.push(value);
    }
  }
  if (agents.some(({ next }, agent) => next < program[agent].length)) return null;
  return { values: JSON.stringify([agents.map(({ seen }) => seen), value]), conflicts };
}

const first = ([agent]: readonly number[]) => agent;
const write = (value: number): Step => ({ do: 'write', value });
const signal = (channel: number): Step => ({ do: 'signal', channel });
const wait = (channel: number): Step => ({ do: 'wait', channel });
const read: Step = { do: 'read' };

/** The values of every order in which the steps can come. */
function outcomes(program: Program): ReadonlySet<string> {
  const all = new Set<string>();
  const explore = (prefix: readonly number[]): void => {
    let at = 0;
    let others: readonly number[] = [];
    const result = run(
      program,
      (ready) => {
        if (at < prefix.length) return prefix[at++];
        if (at++ === prefix.length) others = ready;
        return first(ready);
      },
      true,
    );
    if (others.length === 0) {
      if (result !== null) all.add(result.values);
      return;
    }
    for (const agent of others) explore([...prefix, agent]);
  };
  explore([]);
  return all;
}

const conflictsOf = (program: Program, equalWrites: boolean) =>
  run(program, first, equalWrites)?.conflicts;

describe('two writes of the same in no order', () => {
  it('are a race where equal writes need an order, and none where they do not', () => {
    const program = [[write(7)], [write(7)], [write(7)]];
    expect(conflictsOf(program, true)).toBe(2);
    expect(conflictsOf(program, false)).toBe(0);
    expect(conflictsOf([[write(7)], [write(8)]], false)).toBe(1);
  });

  it('both have to come before a read', () => {
    const reader = [wait(0), wait(1), read];
    const both = [[write(7), signal(0)], [write(7), signal(1)], reader];
    expect(conflictsOf(both, false)).toBe(0);
    expect(conflictsOf([both[0], [write(7)], [wait(0), read]], false)).toBe(1);
    expect(conflictsOf([[write(7)], both[1], [wait(1), read]], false)).toBe(1);
  });

  it('are one where the word has been read with another value in between', () => {
    expect(conflictsOf([[write(7), read, write(9)], [write(9)]], false)).toBe(1);
    expect(outcomes([[write(7), read, write(9)], [write(9)]]).size).toBe(2);
  });

  // As in fla's recurrent kernels, where four warps reduce and all of them store the sums.
  it('are none after few accesses that have left many words in many states', () => {
    const count = 64;
    const memory = createShadowMemory(count, { equalWrites: false });
    memory.initialise({ start: 0, count });
    const chains = createChains();
    const before = createClock();
    const accessOf = (kind: 'read' | 'write') => {
      const chain = chains.createAgent();
      const clock = createClock();
      tickClock(clock, chain);
      const time = clock.times[chain];
      const repeats = kind === 'write';
      const who = `agent ${chain}`;
      const stamp = new Stamp({
        chain,
        time,
        kind,
        repeats,
        proxy: 'generic',
        site: '',
        who,
        step: 0,
      });
      const of = (start: number, size: number) =>
        memory[kind]({ start, count: size }, stamp, { clock, asyncView: createClock() });
      return { clock, of };
    };
    for (let reader = 0; reader < 6; reader++) {
      const { clock, of } = accessOf('read');
      // No two words are read by the same agents.
      for (let word = 0; word < count; word++) if (((word >> reader) & 1) === 1) of(word, 1);
      joinClock(before, clock);
    }
    const conflicts = [0, 1].flatMap(() => {
      const { clock, of } = accessOf('write');
      joinClock(clock, before);
      return of(0, count);
    });
    expect(conflicts.filter(({ missing }) => missing !== null)).toEqual([]);
  });

  it('without a race, every order gives the same', () => {
    const step: fc.Arbitrary<Step> = fc.oneof(
      fc.record({ do: fc.constant('write' as const), value: fc.integer({ min: 0, max: 2 }) }),
      fc.constant(read),
      fc.record({ do: fc.constantFrom('signal' as const, 'wait' as const), channel: fc.nat(1) }),
    );
    const programs = fc
      .array(fc.array(step, { minLength: 1, maxLength: 4 }), { minLength: 2, maxLength: 3 })
      // A channel that several signal would make known what the order decides.
      .filter((program) =>
        [0, 1].every(
          (channel) =>
            program.flat().filter((one) => one.do === 'signal' && one.channel === channel).length <=
            1,
        ),
      );
    let clean = 0;
    fc.assert(
      fc.property(programs, fc.infiniteStream(fc.nat(5)), (program, choices) => {
        const choose = (ready: readonly number[]) =>
          ready[(choices.next().value ?? 0) % ready.length];
        const result = run(program, choose, false);
        if (result === null || result.conflicts > 0) return;
        clean++;
        expect([...outcomes(program)]).toEqual([result.values]);
      }),
      { numRuns: 300 * scaled(1) },
    );
    expect(clean).toBeGreaterThan(0);
  });
});
