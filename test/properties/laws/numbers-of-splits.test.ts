import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { problemShape } from '../../../src/problem/index.js';
import { drawnProblem } from './law-by-hand.js';
import { definedKernel, tryLaw } from './try-law.js';

describe('numbers of splits', () => {
  it('are tried in turn, to the bit beside the next one, and any element of either is compared', async () => {
    await fc.assert(
      fc.asyncProperty(
        drawnProblem({ masked: true }),
        fc.uniqueArray(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 4 }),
        fc.nat({ max: 15 }),
        fc.constantFrom('bits' as const, 'bound' as const),
        fc.nat(),
        async (problem, counts, choice, strength, which) => {
          const asked: number[] = [];
          const { batch, heads, queries, vDim } = problemShape(problem);
          const at = which % (batch * heads * queries * vDim);
          const trial = (wrongAt: number) => ({
            strength,
            promises: {
              splits: {
                counts,
                kernel: async (posed: typeof problem, splits: number) => {
                  asked.push(splits);
                  const given = await definedKernel(posed);
                  if (asked.length - 1 === wrongAt) given.out.data[at] = 77;
                  return given;
                },
              },
            },
          });
          const lawCase = { problem, choice };
          expect((await tryLaw('split-counts', lawCase, trial(-1))).status).toBe('held');
          const count = counts[choice % counts.length];
          const other = counts[(choice + 1) % counts.length];
          expect(asked).toEqual(strength === 'bits' ? [count, other] : [count]);
          for (const run of asked.splice(0).keys()) {
            const found = await tryLaw('split-counts', lawCase, trial(run));
            asked.splice(0);
            const text = found.status === 'violated' ? found.statement : 'it holds';
            if (strength === 'bound') expect(text).toMatch(new RegExp(`^in ${count} splits, `));
            else expect(text).toContain(run === 0 ? `77 in ${count}` : ` is 77 in ${other} splits`);
          }
        },
      ),
      { numRuns: 15 },
    );
  });

  it('are none where none is promised', async () => {
    const kernel = () => expect.fail('no number of splits is promised');
    const [problem] = fc.sample(drawnProblem({}), 1);
    const found = await tryLaw(
      'split-counts',
      { problem, choice: 3 },
      { promises: { splits: { counts: [], kernel } } },
    );
    const nothing = { status: 'inapplicable', reason: 'no number of splits is promised' };
    expect(found).toEqual(nothing);
    expect(await tryLaw('split-counts', { problem, choice: 3 })).toEqual(nothing);
  });
});
