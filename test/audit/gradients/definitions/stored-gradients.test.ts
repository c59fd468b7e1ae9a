import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { storedFaults } from '../../../../src/audit/gradients/diagnosis/stored/stored-faults.js';
import { axisOf, placeOfKeys, placeOfRows } from '../../../../src/audit/rows/index.js';
import { problemShape } from '../../../../src/problem/index.js';
import { filledProblem } from '../../../setup/problems.js';
import { bareFailure, drawGradient, type BareGradient, type Named } from './bare-failure.js';
import { drawFrom } from './random-pairs.js';

const [batch, heads, vDim] = [2, 2, 4] as const;
const all = batch * heads;
/** Too few rows to tell a sign by, and just enough. */
const [queries, keys] = [7, 8] as const;

const names = fc.constantFrom<Named>('dq', 'dk', 'dv');
const rowsOf = (name: Named) => (name === 'dq' ? queries : keys);
const problem = filledProblem({ batch, heads, queries, keys, dim: vDim }, () => 1);
const layout = { ...problem, shape: problemShape(problem) };

/** A gradient that may be off by 1/8, from the exact and the given value of each element. */
function made(
  name: Named,
  pairOf: (sign: number, row: number, column: number) => readonly [exact: number, value: number],
): BareGradient {
  const one = drawGradient(problem, name, drawFrom(7));
  const pairs = Array.from(one.exact, (x, i) =>
    pairOf(Math.sign(x), Math.floor(i / vDim), i % vDim),
  );
  return {
    ...one,
    exact: Float64Array.from(pairs, ([exact]) => exact),
    values: Float64Array.from(pairs, ([, value]) => value),
    total: one.exact.map(() => 1 / 8),
  };
}

const said = (name: Named, gradient: BareGradient) => [
  ...storedFaults(bareFailure(problem, { [name]: gradient }, [name])),
];

describe('rows that are not written', () => {
  it('are zero throughout, and so are rows beside them that rightly are', () => {
    // As it is, not written, rightly zero, or zero but for an element.
    const kinds = fc.array(fc.constantFrom('own', 'lost', 'lost', 'none', 'none', 'part'), {
      minLength: all * keys,
      maxLength: all * keys,
    });
    fc.assert(
      fc.property(names, kinds, (name, kinds) => {
        const rows = rowsOf(name);
        const gradient = made(name, (sign, row, column) => {
          const exact = kinds[row] === 'none' ? 1 / 8 : sign;
          const isLeft = kinds[row] === 'own' || (kinds[row] === 'part' && column === vDim - 1);
          return [exact, isLeft ? exact : 0];
        });
        const isZero = (row: number) => kinds[row] === 'lost' || kinds[row] === 'none';
        const isLost = (row: number) => {
          const head = Math.floor(row / rows);
          let [first, end] = [row, row];
          while (first > head * rows && isZero(first - 1)) first--;
          while (end < (head + 1) * rows && isZero(end)) end++;
          return isZero(row) && kinds.slice(first, end).includes('lost');
        };
        const lost = Array.from({ length: all * rows }, (_, row) => row).filter(isLost);
        const found = said(name, gradient).filter(({ id }) => id === 'rows-zero');
        expect(found).toHaveLength(lost.length === 0 ? 0 : 1);
        for (const { predicted, sentence } of found) {
          expect([...predicted[name]!]).toEqual(
            Array.from(gradient.exact, (x, i) => (isLost(Math.floor(i / vDim)) ? 0 : x)),
          );
          const count = lost.length === 1 ? '1 row,' : `${lost.length} rows,`;
          expect(sentence).toContain(` is zero in ${count} as where it is not written`);
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe('columns of heads', () => {
  it('are zero, or negated, where all their rows are, but not all columns of all heads', () => {
    const drawn = fc.array(
      fc.constantFrom('own', 'lost', 'none', 'part', 'turned', 'partly', 'even'),
      { minLength: all * vDim, maxLength: all * vDim },
    );
    const whole = fc.constantFrom('lost', 'turned', null, null, null);
    fc.assert(
      fc.property(names, drawn, whole, (name, some, kindOfAll) => {
        const rows = rowsOf(name);
        const kinds = some.map((kind) => kindOfAll ?? kind);
        const kindOf = (row: number, column: number) =>
          kinds[Math.floor(row / rows) * vDim + column];
        const gradient = made(name, (sign, row, column) => {
          const [isFirst, isLast] = [row % rows === 0, row % rows === rows - 1];
          const pairs = {
            own: [sign, sign],
            lost: [sign, 0],
            none: [1 / 8, 0],
            part: [sign, isLast ? sign : 0],
            // As far off as it may be.
            turned: [sign, isFirst ? -sign + 1 / 8 : -sign],
            partly: [sign, isFirst ? sign : -sign],
            // Either sign is within 1/8 of it.
            even: [1 / 16, -1 / 16],
          } as const;
          return pairs[kindOf(row, column)];
        });
        const found = said(name, gradient);
        for (const [id, of, by, words] of [
          ['columns-zero', 'lost', 0, 'is zero in'],
          ['column-sign', 'turned', -1, 'has the wrong sign in'],
        ] as const) {
          const chosen = kinds.flatMap((kind, at) => (kind === of ? [at] : []));
          const isTold =
            chosen.length > 0 && chosen.length < kinds.length && (of === 'lost' || rows === keys);
          const ones = found.filter((each) => each.id === id);
          expect(ones).toHaveLength(isTold ? 1 : 0);
          for (const { predicted, sentence, place } of ones) {
            expect([...predicted[name]!]).toEqual(
              Array.from(gradient.exact, (x, i) =>
                kindOf(Math.floor(i / vDim), i % vDim) === of && x !== 0 ? by * x + 0 : x,
              ),
            );
            const different = new Set(chosen.map((at) => at % vDim));
            const heads = [...new Set(chosen.map((at) => Math.floor(at / vDim)))];
            const within = heads.flatMap((head) =>
              Array.from({ length: rows }, (_, row) => head * rows + row),
            );
            expect(place).toEqual({
              ...(name === 'dq' ? placeOfRows : placeOfKeys)(within, layout),
              columns: axisOf(different, vDim),
            });
            const count = different.size === 1 ? '1 column' : `${different.size} columns`;
            expect(sentence).toMatch(new RegExp(` ${words} ${count}(,|$)`));
          }
        }
      }),
      { numRuns: 80 },
    );
  });
});
