import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { paddingFaults } from '../../../../src/audit/gradients/diagnosis/stored/padding-faults.js';
import { filledProblem, sequencesOf } from '../../../setup/problems.js';
import { bareFailure, type BareGradient } from './bare-failure.js';

const names = ['dq', 'dk', 'dv'] as const;
const counts = [1, 2, 64, 100, 128] as const;

const drawns = fc.record({
  queries: fc.constantFrom(...counts),
  keys: fc.constantFrom(...counts),
  isPacked: fc.integer({ max: 9, min: 0 }).map((x) => x === 0),
  /** The least LSE of a row: e^−LSE is a number in fp32 from −88 on. */
  lse: fc.constantFrom(0, -88, -88, -88.1),
});

/** All choices of some gradients, those that fail among them. */
const choices = [1, 2, 3, 4, 5, 6, 7].flatMap((ofGiven) =>
  [1, 2, 3, 4, 5, 6, 7]
    .filter((ofFailing) => (ofFailing & ofGiven) === ofFailing)
    .flatMap((ofFailing) => {
      const some = (bits: number) => names.filter((_, i) => ((bits >> i) & 1) === 1);
      // The last that fails may have an element that is a number all the same.
      return [false, true].map((hasNumber) => ({
        given: some(ofGiven),
        wrong: some(ofFailing),
        hasNumber,
      }));
    }),
);

/** A gradient of one column that is right. */
function rightGradient(length: number): BareGradient {
  const exact = new Float64Array(length);
  const none = exact;
  return { values: exact, exact, shift: none, systematic: none, deviation: none, total: none };
}

describe('a gradient that is NaN throughout', () => {
  it('may be one whose last tile is padded, where another from the same rows is right', () => {
    fc.assert(
      fc.property(drawns, ({ queries, keys, isPacked, lse }) => {
        const problem = filledProblem(
          { queries, keys, dim: 1 },
          () => 1,
          isPacked ? { sequences: sequencesOf([[queries, keys]]) } : {},
        );
        const isPadded = (count: number) => count > 1 && count % 64 !== 0 && count % 128 !== 0;
        const rows = Array.from({ length: queries }, (_, i) => (i === queries - 1 ? lse : 90));
        for (const { given, wrong, hasNumber } of choices) {
          const drawn = Object.fromEntries(
            given.map((name) => {
              const one = rightGradient(name === 'dq' ? queries : keys);
              if (!wrong.includes(name)) return [name, one];
              const isNumber = hasNumber && name === wrong.at(-1);
              const values = one.exact.map((_, i) => (isNumber && i === 0 ? 0 : NaN));
              return [name, { ...one, values }];
            }),
          );
          const found = [...paddingFaults(bareFailure(problem, drawn, wrong, rows))];
          // dQ is a sum over keys; dK and dV are sums over queries.
          const right = given.filter((name) => !wrong.includes(name));
          const isLikely = wrong.includes('dq')
            ? wrong.length === 1 && isPadded(keys) && right.length > 0
            : isPadded(queries) && right.includes('dq');
          const isTold = isLikely && !isPacked && lse >= -88 && !hasNumber;
          expect(found.map(({ id }) => id)).toEqual(isTold ? ['padding-nan'] : []);
          for (const { predicted, sentence } of found) {
            expect(predicted).toEqual(Object.fromEntries(wrong.map((n) => [n, drawn[n].values])));
            const what = {
              dq: 'dQ is NaN everywhere, as where K or V of keys beyond',
              dk: 'dK is NaN everywhere, as where D, LSE or dO of queries beyond',
              dv: 'dV is NaN everywhere, as where the LSE or dO of queries beyond',
              'dk,dv': 'dK and dV are NaN everywhere, as where the LSE or dO of queries beyond',
            }[wrong.join()];
            expect(sentence).toContain(what);
            expect(sentence).toContain('a tile of 64 or 128,');
          }
        }
      }),
      { numRuns: 30 },
    );
  });
});
