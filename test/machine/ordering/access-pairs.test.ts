import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  clockIncludes,
  createClock,
  createShadowMemory,
  joinClock,
  Stamp,
  tickClock,
  type Proxy,
} from '../../../src/machine/ordering/index.js';
import { scaled } from '../../setup/effort.js';

type Kind = 'read' | 'write';
type Scope = 'cta' | 'gpu' | undefined;

/** An agent with clocks of its own, whose accesses are to one word. */
function createAgent(chain: number, cta = 0) {
  const clocks = { clock: createClock(), asyncView: createClock() };
  const stampOf = (kind: Kind, proxy: Proxy = 'generic', scope?: Scope) => {
    const time = tickClock(clocks.clock, chain);
    // An instruction is strong or weak wherever it is executed.
    const site = `${kind} ${scope ?? 'weak'}`;
    return new Stamp({ chain, time, kind, proxy, site, scope, cta, who: `${chain}`, step: 0 });
  };
  return { ...clocks, chain, stampOf };
}

const word = { start: 0, count: 1 };

/** A memory of one word with contents. */
function createWord(rules: Parameters<typeof createShadowMemory>[1] = {}) {
  const memory = createShadowMemory(1, rules);
  memory.initialise(word);
  return memory;
}

const kinds = ['read', 'write'] as const;
const proxies = ['generic', 'async'] as const;

describe('two accesses', () => {
  it('of which one writes race unless they are ordered, with a fence on the way to the async proxy', () => {
    for (const readFences of [true, false])
      for (const [first, second] of kinds.flatMap((a) => kinds.map((b) => [a, b] as const)))
        for (const [from, to] of proxies.flatMap((a) => proxies.map((b) => [a, b] as const)))
          for (const order of ['none', 'order', 'fence'] as const) {
            const memory = createWord({ readFences });
            const [one, other] = [createAgent(0), createAgent(1)];
            const earlier = one.stampOf(first, from);
            memory[first](word, earlier, one);
            if (order !== 'none') joinClock(other.clock, one.clock);
            if (order === 'fence') joinClock(other.asyncView, one.clock);
            const conflicts = memory[second](word, other.stampOf(second, to), other);
            const lacksFence = order === 'order' && from === 'generic' && to === 'async';
            const missing = order === 'none' ? 'order' : lacksFence ? 'proxy-fence' : null;
            const isSettled = !readFences && first === 'read' && missing === 'proxy-fence';
            const races = first !== second || first === 'write';
            const kind = `${first}-${second}`;
            const expected =
              races && missing !== null && !isSettled ? [{ kind, earlier, missing }] : [];
            const isInVain = first === 'write' && second === 'write' && missing === null;
            const inVain = [{ kind: 'overwritten-unread', earlier, missing: null }];
            const found = conflicts.map((of) => ({
              kind: of.kind,
              earlier: of.earlier,
              missing: of.missing,
            }));
            expect(found).toEqual(isInVain ? inVain : expected);
          }
  });

  it('without fences for reads, who has read a write stands for its fence, and not for its order', () => {
    for (const isRead of [true, false])
      for (const readFences of [true, false])
        for (const isOrdered of [true, false]) {
          const memory = createWord({ readFences });
          const [one, reader, copy] = [0, 1, 2].map((chain) => createAgent(chain));
          memory.write(word, one.stampOf('write'), one);
          joinClock(reader.clock, one.clock);
          if (isRead) memory.read(word, reader.stampOf('read'), reader);
          if (isOrdered) joinClock(copy.clock, reader.clock);
          const conflicts = memory.write(word, copy.stampOf('write', 'async'), copy);
          const missing = isOrdered ? 'proxy-fence' : 'order';
          const ofWrite = [`write-write ${missing}`];
          const ofRead = isRead ? [`read-write ${missing}`] : [];
          const all = [...ofWrite, ...ofRead];
          expect(conflicts.map((found) => `${found.kind} ${found.missing}`)).toEqual(
            readFences || !isOrdered ? all : isRead ? [] : ofWrite,
          );
        }
  });
});

/** A step of three agents, the first two of one CTA: an access, or a signal from one to another. */
interface Step {
  readonly agent: number;
  readonly does: Kind | 'signal';
  readonly scope: Scope;
  readonly to: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  agent: fc.nat(2),
  does: fc.constantFrom('read' as const, 'write' as const, 'signal' as const, 'signal' as const),
  scope: fc.constantFrom(undefined, 'cta' as const, 'gpu' as const),
  to: fc.nat(2),
});

/** Whether both are strong, for one another's threads: of the first two agents or of all. */
function areStrong(one: Stamp, other: Stamp): boolean {
  if (one.strength === 0 || other.strength === 0) return false;
  return one.cta === other.cta || (one.strength === 2 && other.strength === 2);
}

it('the first race at a word is found, and no other is told; what the schedule decides is told', () => {
  let [races, dependences] = [0, 0];
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20, size: 'max' }), (steps) => {
      let isTold = false;
      const memory = createWord({ onUnorderedStrong: () => (isTold = true) });
      const agents = [0, 0, 1].map((cta, chain) => createAgent(chain, cta));
      const accesses: Stamp[] = [];
      for (const { agent, does, scope, to } of steps) {
        const self = agents[agent];
        if (does === 'signal') {
          joinClock(agents[to].clock, self.clock);
          tickClock(self.clock, self.chain);
          continue;
        }
        const stamp = self.stampOf(does, 'generic', scope);
        isTold = false;
        const conflicts = memory[does](word, stamp, self).filter(({ missing }) => missing !== null);
        // By definition: every pair with an access before, in whatever state the word is.
        const unordered = accesses.filter(
          (one) =>
            (one.kind === 'write' || does === 'write') &&
            !clockIncludes(self.clock, one.chain, one.time),
        );
        const isRace = unordered.some((one) => !areStrong(one, stamp));
        expect(conflicts.length > 0).toBe(isRace);
        for (const { earlier, later, missing } of conflicts) {
          expect(unordered).toContain(earlier);
          expect([later, missing]).toEqual([stamp, 'order']);
        }
        if (isRace) {
          races++;
          return;
        }
        expect(isTold).toBe(unordered.length > 0);
        if (isTold) dependences++;
        // A strong write stands for all that it comes after; of what was weaker later races are not looked for.
        const isStrongest = accesses.every(
          (one) => one.strength >= stamp.strength && one.cta === stamp.cta,
        );
        if (does === 'write' && stamp.isStrong && !isStrongest) return;
        accesses.push(stamp);
      }
    }),
    { numRuns: scaled(600) },
  );
  expect(Math.min(races, dependences)).toBeGreaterThan(0);
});

it('a write is in vain where the last access was a write that it comes after', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      const memory = createWord();
      const self = createAgent(0);
      let last: Stamp | null = null;
      for (const { does, scope } of steps) {
        if (does === 'signal') continue;
        const stamp: Stamp = self.stampOf(does, 'generic', scope);
        const conflicts = memory[does](word, stamp, self);
        const isInVain = does === 'write' && scope === undefined && last?.kind === 'write';
        expect(conflicts.map(({ kind }) => kind)).toEqual(isInVain ? ['overwritten-unread'] : []);
        // Again by one instruction: it is no other access.
        expect(memory[does](word, stamp, self)).toEqual([]);
        last = stamp;
      }
    }),
    { numRuns: scaled(100) },
  );
});

it('words that are an mbarrier conflict with every access until they are none, and then come after its end', () => {
  const [owner, other] = [createAgent(0), createAgent(1)];
  const memory = createWord();
  const written = other.stampOf('write');
  memory.write(word, written, other);
  const occupied = owner.stampOf('write');
  const kindsOf = (found: ReturnType<typeof memory.read>) =>
    found.map(({ kind, earlier }) => [kind, earlier]);
  expect(kindsOf(memory.occupy(word, occupied, owner))).toEqual([['write-write', written]]);
  joinClock(other.clock, owner.clock);
  for (const kind of kinds)
    expect(kindsOf(memory[kind](word, other.stampOf(kind), other))).toEqual([
      ['barrier', occupied],
    ]);
  expect(kindsOf(memory.end(word, other.stampOf('write'), other))).toEqual([['barrier', occupied]]);
  const again = createWord();
  again.occupy(word, owner.stampOf('write'), owner);
  expect(again.occupy(word, owner.stampOf('write'), owner)).toEqual([]);
  const vacated = owner.stampOf('write');
  expect(again.vacate(word, vacated, owner)).toEqual([]);
  expect(kindsOf(again.write(word, other.stampOf('write'), other))).toEqual([
    ['write-write', vacated],
    ['read-write', vacated],
  ]);
  joinClock(other.clock, owner.clock);
  expect(kindsOf(again.end(word, other.stampOf('write'), other))).toEqual([]);
  expect(kindsOf(again.read(word, other.stampOf('read'), other))).toEqual([
    ['uninitialised', null],
  ]);
});
