import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { overflowFaults } from '../../../../src/audit/gradients/diagnosis/stored/overflow-faults.js';
import { filledProblem } from '../../../setup/problems.js';
import { bareFailure, drawGradient, type Named } from './bare-failure.js';
import { drawFrom } from './random-pairs.js';

const [batch, heads, kvHeads, queries, keys] = [2, 4, 2, 3, 5] as const;
const columns = { dq: 3, dk: 3, dv: 2 } as const;
const prose = { dq: 'dQ', dk: 'dK', dv: 'dV' } as const;

/** e^−LSE is a number in fp32 to 2^128, whose logarithm is 128 ln 2. */
const border = 128 * Math.LN2;

const drawns = fc.record({
  seed: fc.nat(1e6),
  lse: fc.array(fc.constantFrom(0, 0, 0, 0, -border + 1e-9, -border - 1e-9, -Infinity), {
    minLength: batch * heads * queries,
    maxLength: batch * heads * queries,
  }),
  failing: fc.subarray<Named>(['dq', 'dk', 'dv'], { minLength: 1 }),
  /** How the last that fails differs from what is said. */
  last: fc.constantFrom('not', 'not', 'at its bound', 'beyond its bound', 'a number', 'a NaN'),
});

describe('gradients of rows whose e^−LSE is no number in fp32', () => {
  it('are not finite where such rows add to them, and right elsewhere', () => {
    fc.assert(
      fc.property(drawns, ({ seed, lse, failing, last }) => {
        const frame = { batch, heads, kvHeads, queries, keys, dim: 3, vDim: 2 };
        const problem = filledProblem(frame, () => 1, { causal: true });
        // The last query sees all keys, and each before it one fewer.
        const isSeen = (query: number, key: number) => key <= query + keys - queries;
        const isDeep = (row: number) => lse[row] === -border - 1e-9;
        const isSpoiled = (name: Named, i: number) => {
          const row = Math.floor(i / columns[name]);
          if (name === 'dq') return isDeep(row);
          const [kvHead, key] = [Math.floor(row / keys), row % keys];
          return lse.some(
            (_, at) =>
              isDeep(at) &&
              Math.floor(at / queries / (heads / kvHeads)) === kvHead &&
              isSeen(at % queries, key),
          );
        };
        const draw = drawFrom(seed);
        let isAsSaid = true;
        const drawn = Object.fromEntries(
          (['dq', 'dk', 'dv'] as const).map((name) => {
            const one = drawGradient(problem, name, draw);
            if (!failing.includes(name)) return [name, one] as const;
            const values = one.values.map((x, i) =>
              isSpoiled(name, i) ? [NaN, Infinity, -Infinity][i % 3] : x,
            );
            if (name === failing.at(-1)) {
              const spoiled = values.findIndex((_, i) => isSpoiled(name, i));
              const right = values.findIndex((_, i) => !isSpoiled(name, i));
              const far = last === 'at its bound' ? 0.999 : 1.001;
              if (last === 'a number' && spoiled >= 0) values[spoiled] = one.exact[spoiled];
              if (last === 'a NaN' && right >= 0) values[right] = NaN;
              if (last.includes('bound') && right >= 0) values[right] -= far * one.total[right];
              isAsSaid =
                last === 'not' ||
                last === 'at its bound' ||
                (last === 'a number' ? spoiled : right) < 0;
            }
            return [name, { ...one, values }] as const;
          }),
        );
        const found = [...overflowFaults(bareFailure(problem, drawn, failing, lse))];
        expect(found.map(({ id }) => id)).toEqual(
          isAsSaid && lse.some((_, row) => isDeep(row)) ? ['lse-overflow'] : [],
        );
        for (const { predicted, sentence } of found) {
          expect(predicted).toEqual(
            Object.fromEntries(failing.map((name) => [name, drawn[name].values])),
          );
          const names = failing
            .map((name) => prose[name])
            .join(', ')
            .replace(/, (?=[^,]*$)/, ' and ');
          const [verb, them] = failing.length === 1 ? ['is', 'it'] : ['are', 'them'];
          expect(sentence).toContain(
            `${names} ${verb} NaN or infinite wherever rows with an LSE below −88 add to ${them},`,
          );
        }
      }),
      { numRuns: 100 },
    );
  });
});
