import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Stamp } from '../../../src/machine/ordering/index.js';
import {
  createConflictCounter,
  createShadowStates,
  initialState,
  uninitialisedState,
  type Writer,
} from '../../../src/machine/ordering/shadow-states.js';
import { scaled } from '../../setup/effort.js';

const stamps = Array.from(
  { length: 5 },
  (_, chain) =>
    new Stamp({ chain, time: 1, kind: 'write', proxy: 'generic', site: '', who: '', step: 0 }),
);

/** A state, as it was made. */
interface Made {
  readonly writer: Writer;
  readonly readers: readonly Stamp[];
  readonly superseded: readonly Stamp[] | null;
  words: number;
  /** The access that asked last, and what it was told to remember. */
  answer: { readonly access: number; readonly next: number } | null;
}

const act = fc.record({
  does: fc.constantFrom(
    'add',
    'add',
    'add',
    'move',
    'move',
    'move all',
    'move all',
    'sweep',
    'ask',
  ),
  one: fc.nat(999),
  other: fc.nat(999),
  amount: fc.nat(999),
});

it('states keep what they are while they have words, and numbers of forgotten ones are used again', () => {
  let [reused, most] = [0, 0];
  fc.assert(
    fc.property(
      fc.array(act, { minLength: 40, maxLength: 200, size: 'max' }),
      fc.constantFrom(1, 2, 4),
      (acts, parts) => {
        const states = createShadowStates(100);
        const empty = { readers: [], superseded: [], answer: null };
        // What is known of each state that is not forgotten, and numbers that are free.
        const known = new Map<number, Made>([
          [uninitialisedState, { ...empty, writer: null, words: 100 }],
          [initialState, { ...empty, writer: 'host', words: 0 }],
        ]);
        const free = new Set<number>();
        let highest = 1;
        let total = 100;
        let access = 0;
        acts.forEach(({ does, one, other, amount }, index) => {
          const numbers = [...known.keys()];
          const from = numbers[one % numbers.length];
          // Often the latest, which has no words yet.
          const to = numbers[other % 2 === 0 ? numbers.length - 1 : other % numbers.length];
          if (does === 'add') {
            const writer = [null, 'host' as const, ...stamps][one % 7];
            const readers = stamps.slice(other % 5);
            const superseded = [undefined, null, stamps.slice(amount % 5)][amount % 3];
            const state = states.add(writer, readers, superseded);
            expect(known.has(state)).toBe(false);
            // A free number, if there is any.
            if (free.size > 0) {
              expect(free.has(state)).toBe(true);
              reused++;
            } else expect(state).toBe(++highest);
            free.delete(state);
            most = Math.max(most, known.size);
            known.set(state, {
              writer,
              readers,
              superseded: superseded ?? null,
              words: 0,
              answer: null,
            });
          } else if (does === 'move' || does === 'move all') {
            const full = numbers.filter((state) => known.get(state)!.words > 0);
            const source = full[one % full.length];
            const { words } = known.get(source)!;
            const count = does === 'move' ? 1 + (amount % Math.min(words, 3)) : words;
            if (source === to) return;
            states.move(source, to, count);
            known.get(source)!.words -= count;
            known.get(to)!.words += count;
          } else if (does === 'sweep') {
            const kept = from;
            states.sweep(kept);
            for (const [state, { words }] of known)
              if (words === 0 && state > initialState && state !== kept) {
                known.delete(state);
                free.add(state);
              }
          } else {
            // Only the answer for the latest access that asked is kept.
            access += amount % 2;
            const { answer } = known.get(from)!;
            const found = states.recall(from, access + 1);
            expect(found).toBe(answer?.access === access + 1 ? answer.next : -1);
            states.remember(from, access + 1, to);
            known.get(from)!.answer = { access: access + 1, next: to };
          }
          if (index === Math.floor(acts.length / 2)) {
            states.divide(parts);
            for (const made of known.values()) made.words *= parts;
            total *= parts;
          }
          if (does !== 'sweep' && index < acts.length - 1) return;
          const found = [...known.keys()].map((state) => [
            states.writerOf(state),
            states.readersOf(state),
            states.supersededOf(state),
          ]);
          const made = [...known.values()].map((x) => [x.writer, x.readers, x.superseded]);
          // Stamps are compared by what they are, arrays by what they hold.
          const [ofStates, ofKnown] = [found.flat(2), made.flat(2)];
          const isSame =
            ofStates.length === ofKnown.length && ofStates.every((x, at) => x === ofKnown[at]);
          if (!isSame) expect(found).toEqual(made);
        });
        expect([...known.values()].reduce((sum, { words }) => sum + words, 0)).toBe(total);
        // There are never more states than words, and those that a sweep leaves.
        states.sweep(uninitialisedState);
        const left = [...known].filter(([state, { words }]) => words > 0 || state <= initialState);
        const next = Array.from({ length: 3 }, () => states.add(null, []));
        expect(new Set([...left.map(([state]) => state), ...next]).size).toBe(left.length + 3);
        expect(Math.max(...next)).toBeLessThanOrEqual(Math.max(highest, left.length + 2));
      },
    ),
    { numRuns: scaled(60) },
  );
  expect(reused).toBeGreaterThan(0);
  // More than there is room for at first.
  expect(most).toBeGreaterThan(20);
});

it('conflicts of one kind with one access are counted together, by their words', () => {
  const [a, b, later] = stamps;
  const counter = createConflictCounter(later);
  const race = (earlier: Stamp | null) => ({
    kind: 'write-read' as const,
    earlier,
    missing: 'order' as const,
  });
  const other = { kind: 'read-write' as const, earlier: a, missing: 'order' as const };
  counter.add([race(a), race(b)], 5, 2);
  counter.add([race(b)], 9, 3);
  counter.add([other, race(null)], 12, 1);
  counter.add([race(a)], 3, 4);
  counter.add([], 1, 1);
  expect(counter.list()).toEqual([
    { ...race(a), later, firstWord: 5, words: 6 },
    { ...race(b), later, firstWord: 5, words: 5 },
    { ...other, later, firstWord: 12, words: 1 },
    { ...race(null), later, firstWord: 12, words: 1 },
  ]);
});
