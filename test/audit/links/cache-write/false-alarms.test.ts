import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isSettled } from '../../../../src/audit/links/cache-write/factor-rules.js';
import { judgeWrite } from '../../../../src/audit/links/cache-write/judge-write.js';
import { scaled } from '../../../setup/effort.js';
import { auditedWrite, describePlan, drawPlan } from './drawn-plan.js';
import { writePlain } from './plain-writer.js';

/** TEST_EFFORT=25 tries 10,000. */
const runs = scaled(400);

describe('right writes of caches', () => {
  it('pass, with the rule declared and without', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 2 ** 31 }),
        fc.boolean(),
        fc.boolean(),
        (seed, rule, division) => {
          const plan = drawPlan(seed);
          const judged = judgeWrite(
            auditedWrite(plan, writePlain(plan), { rule, division: rule && division }),
          );
          const { counts, wrongRows, others } = judged;
          const isRight = counts.wrong + counts.wrongFactors + (others?.changed ?? 0) === 0;
          const said = isRight ? '' : `${describePlan(plan)} ${JSON.stringify(wrongRows[0])}`;
          expect(said).toBe('');
          expect(judged.rules.every((one) => one === null || isSettled(one))).toBe(true);
          expect(counts.judged).toBe(
            2 * plan.heads * plan.columns * plan.slots.filter((slot) => slot >= 0).length,
          );
        },
      ),
      { numRuns: runs },
    );
  });
});
