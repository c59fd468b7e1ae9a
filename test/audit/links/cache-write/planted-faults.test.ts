import { describe, expect, it } from 'vitest';
import { explainWrite } from '../../../../src/audit/links/cache-write/explain-write.js';
import { judgeWrite } from '../../../../src/audit/links/cache-write/judge-write.js';
import { scaled } from '../../../setup/effort.js';
import { auditedWrite, drawPlan } from './drawn-plan.js';
import { plantedFaults } from './planted-faults.js';
import { writePlain, type Written } from './plain-writer.js';

const seeds = Array.from({ length: scaled(4) }, (_, i) => i + 1);

/** Whether two writes leave the same bytes: a fault that nobody can see. */
function isSame(a: Written, b: Written): boolean {
  return [...a.after].every(([name, bytes]) => bytes.every((x, i) => x === b.after.get(name)?.[i]));
}

describe('wrong writes of caches', () => {
  it.for(plantedFaults)('$name', ({ id, says, fixed, faults, inputs, declared = true }) => {
    let seen = 0;
    for (const seed of seeds) {
      const plan = drawPlan(seed, fixed);
      inputs?.(plan.inputs[0]);
      const declaration = { rule: declared, division: declared };
      const [good, bad] = [writePlain(plan), writePlain(plan, faults(plan))];
      const right = judgeWrite(auditedWrite(plan, good, declaration));
      expect(right.counts.wrong + right.counts.wrongFactors + (right.others?.changed ?? 0)).toBe(0);
      if (isSame(good, bad)) continue;
      seen++;
      const judged = judgeWrite(auditedWrite(plan, bad, declaration));
      const { wrong, wrongFactors } = judged.counts;
      expect(wrong + wrongFactors + (judged.others?.changed ?? 0), `seed ${seed}`).toBeGreaterThan(
        0,
      );
      const cause = explainWrite(judged);
      expect(cause?.id, `seed ${seed}: ${cause?.sentence}`).toBe(id);
      if (says !== undefined) expect(cause?.sentence).toMatch(says);
    }
    expect(seen).toBeGreaterThanOrEqual(seeds.length / 4);
  });
});
