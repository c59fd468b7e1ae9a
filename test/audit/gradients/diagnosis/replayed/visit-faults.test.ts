import { describe, expect, it } from 'vitest';
import { describePlace } from '../../../../../src/audit/rows/index.js';
import type { Replayed } from '../../../../../src/audit/gradients/diagnosis/replay/replay.js';
import { visitFaults } from '../../../../../src/audit/gradients/diagnosis/replayed/visit-faults.js';
import type { Scope } from '../../../../../src/audit/gradients/diagnosis/scope.js';
import { keysOf, problemMask, problemShape } from '../../../../../src/problem/index.js';
import { filledProblem, sequencesOf } from '../../../../setup/problems.js';
import { bareFailure, drawGradient, type Named } from '../../definitions/bare-failure.js';
import { drawFrom } from '../../definitions/random-pairs.js';

const [heads, queries, keys, dim] = [2, 6, 6, 2] as const;
const whole = filledProblem({ batch: 2, heads, queries, keys, dim }, () => 1, { causal: true });
const packed = filledProblem({ heads: 2 * heads, queries, keys, dim }, () => 1, {
  sequences: sequencesOf([
    [2, 1],
    [4, 5],
  ]),
});

/** What is said where some rows of keys of a gradient are off, counted over the heads of the batch. */
function found(
  off: readonly number[],
  name: Named = 'dk',
  scope: Scope | null = null,
  problem = whole,
) {
  const made = drawGradient(problem, name, drawFrom(3));
  const values = made.values.slice();
  for (const row of off) values[row * dim] += 2 * made.total[row * dim];
  const failed = bareFailure(problem, { [name]: { ...made, values } }, [name]);
  return [...visitFaults({ failed, scope } as unknown as Replayed)];
}

/** Keys 2 and 4 of different heads of the batch entries. */
const off = [keys + 2, 3 * keys + 4];

describe('keys that are left out in the backward pass', () => {
  it.each(['dk', 'dv'] as const)(
    'are those between the first and the last that is off: %s',
    (name) => {
      const [{ id, sentence, change, place }, ...others] = found(off, name);
      expect(others).toEqual([]);
      expect(id).toBe('keys-unseen');
      expect(sentence).toMatch(/^keys 2 to 4 are left out in the backward pass/);
      expect(describePlace(place!)).toBe('keys 2 to 4');
      const { ranges } = problemMask(whole, problemShape(whole));
      for (let head = 0; head < 2 * heads; head++)
        for (let query = 0; query < queries; query++)
          expect([...keysOf(change.ranges!(head, query))]).toEqual(
            [...keysOf(ranges(head, query))].filter((key) => key < 2 || key > 4),
          );
    },
  );

  it('are left out in the heads, sequences and rows of a scope', () => {
    const scopeOf = (isIn: (head: number, query: number) => boolean) =>
      Uint8Array.from({ length: 2 * heads * queries }, (_, row) =>
        Number(isIn(Math.floor(row / queries), row % queries)),
      );
    const placeIn = (scope: Scope) => describePlace(found(off, 'dk', scope)[0].place!);
    expect(placeIn(scopeOf((head) => head === 3))).toBe('sequence 1, head 1, keys 2 to 4');
    expect(placeIn(scopeOf((head, query) => head === 2 && query > 3))).toBe(
      'sequence 1, head 0, queries 4 to 5, 2 of 6 rows, keys 2 to 4',
    );
    expect(placeIn(scopeOf(() => true))).toBe('keys 2 to 4');
  });

  it('are none where all keys may be, where no key is off, in dQ, and in packed sequences', () => {
    expect(found([])).toEqual([]);
    expect(found([0, keys - 1])).toEqual([]);
    expect(found([0, keys - 2])).toHaveLength(1);
    expect(found([1, 2 * keys - 1])).toHaveLength(1);
    expect(found(off, 'dq')).toEqual([]);
    expect(found(off, 'dk', null, packed)).toEqual([]);
  });
});
