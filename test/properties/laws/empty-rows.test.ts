import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describePlace } from '../../../src/audit/index.js';
import { problemShape } from '../../../src/problem/index.js';
import { definedAttention } from '../../kernels/features/index.js';
import { apart } from './try-law.js';
import { drawnProblem, tryByHand, type DefinedRun } from './law-by-hand.js';

describe('rows that see no key', () => {
  it('are 0 and −∞, and no other row is held to that', async () => {
    let empty = 0;
    await fc.assert(
      fc.asyncProperty(
        drawnProblem({ pairs: true }),
        fc.nat(),
        fc.constantFrom(NaN, 2 ** -30, -Infinity, Infinity),
        async (problem, which, x) => {
          const { heads, queries, vDim } = problemShape(problem);
          const { visible } = definedAttention(problem);
          // Other problems are made into such.
          if (visible.every((keys) => keys.length > 0)) return;
          const at = which % (visible.length * vDim);
          const row = Math.floor(at / vDim);
          const [batch, head, query] = apart(row, heads, queries);
          const isEmpty = visible[row].length === 0;
          const promises = { features: ['mask'] } as const;
          const told = async (change: (run: DefinedRun) => void) =>
            (
              await tryByHand('empty-rows', problem, {
                promises,
                change: (run, index) => {
                  if (index === 0) change(run);
                },
              })
            ).statement ?? '';
          expect(await told(() => undefined)).toBe('');
          const ofOut = await told(({ out }) => (out[at] = x));
          const ofLse = await told(({ lse }) => (lse[row] = x));
          const place = { batch, head, query };
          const where = describePlace({ ...place, column: at % vDim });
          const because = 'though the query sees no key';
          if (isEmpty) {
            empty++;
            expect(ofOut).toBe(`O at ${where} is ${x}, not 0, ${because}`);
            expect(ofLse).toBe(
              x === -Infinity
                ? ''
                : `the LSE at ${describePlace(place)} is ${x}, not -Infinity, ${because}`,
            );
          } else for (const text of [ofOut, ofLse]) expect(text).not.toContain(because);
        },
      ),
      { numRuns: 60 },
    );
    expect(empty).toBeGreaterThan(3);
  });
});
