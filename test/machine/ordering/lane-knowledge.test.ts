import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createLaneOrder, type LaneAccess } from '../../../src/machine/ordering/index.js';
import { scaled } from '../../setup/effort.js';

/** What lanes do: an access to bytes of a word, or one of the three ways in which news passes. */
type Act =
  | {
      readonly does: 'access';
      readonly lane: number;
      readonly word: number;
      readonly bytes: number;
      readonly isWrite: boolean;
    }
  | { readonly does: 'meet' | 'tell' | 'learn'; readonly lanes: readonly number[] };

/** The first lanes, one in the middle and the last, whose bit is the sign. */
const lane = fc.constantFrom(0, 1, 17, 31);
const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      does: fc.constant('access' as const),
      lane,
      word: fc.nat(1),
      bytes: fc.constantFrom(1, 2, 3, 12, 15),
      isWrite: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      does: fc.constantFrom('meet' as const, 'tell' as const, 'learn' as const),
      lanes: fc.oneof(fc.array(lane), fc.constant(Array.from({ length: 32 }, (_, i) => i))),
    }),
  },
);

const maskOf = (lanes: readonly number[]) => lanes.reduce((mask, l) => mask | (1 << l), 0);

it('an access conflicts with one of another lane just where no news of it has come', () => {
  fc.assert(
    fc.property(fc.array(act, { maxLength: 40, size: 'max' }), (acts) => {
      const order = createLaneOrder();
      // By definition: each lane knows a set of accesses, its own among them; and what has been told is another set.
      const known = Array.from({ length: 32 }, () => new Set<number>());
      let told = new Set<number>();
      const accesses: (LaneAccess & { word: number; bytes: number })[] = [];
      acts.forEach((one, step) => {
        if (one.does === 'access') {
          const { word, bytes, isWrite } = one;
          const access = { lane: one.lane, isWrite, site: `step ${step}`, step };
          const conflicting = accesses.filter(
            (other, index) =>
              other.word === word &&
              other.lane !== one.lane &&
              (other.bytes & bytes) !== 0 &&
              (other.isWrite || isWrite) &&
              !known[one.lane].has(index),
          );
          const found = order.access(word, bytes, access);
          const isRight =
            found === null
              ? conflicting.length === 0
              : conflicting.some((other) => other.step === found.step);
          if (!isRight) expect(found).toEqual(conflicting);
          known[one.lane].add(accesses.length);
          accesses.push({ ...access, word, bytes });
          return;
        }
        const ofLanes = new Set(one.lanes.flatMap((l) => [...known[l]]));
        order[one.does](maskOf(one.lanes));
        if (one.does === 'tell') told = new Set([...told, ...ofLanes]);
        else
          for (const l of one.lanes)
            known[l] = new Set([...known[l], ...(one.does === 'meet' ? ofLanes : told)]);
      });
    }),
    { numRuns: scaled(150) },
  );
});

it('the lanes of one instruction do not conflict with one another', () => {
  const order = createLaneOrder();
  const write = (of: number, step: number) =>
    order.access(0, 15, { lane: of, isWrite: true, site: 'here', step });
  expect(write(0, 1)).toBeNull();
  expect(write(1, 1)).toBeNull();
  expect(write(2, 2)).toMatchObject({ lane: 0, step: 1 });
});
