import { describe, expect, it } from 'vitest';
import { auditGradients } from '../../../src/audit/index.js';
import { gradientDamages } from './gradient-damages.js';
import { normalCase, roundedGradients } from './gradient-case.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const frame = { heads: 2, kvHeads: 1, queries: 144, keys: 144, dim: 16 } as const;
const cases = {
  causal: normalCase(frame, 41, { causal: true }),
  full: normalCase(frame, 42),
  /** Two heads of K, for what exchanges them. */
  wide: normalCase({ heads: 4, kvHeads: 2, queries: 40, keys: 40, dim: 16 }, 43),
};

describe('an audit of gradients', () => {
  inTurn.each(['causal', 'full'] as const)('passes exact gradients in bf16, %s', (name) => {
    const given = cases[name];
    const { verdict, gradients } = auditGradients(
      given.problem,
      roundedGradients(given, given.exact),
    );
    expect(verdict).toMatchObject({ pass: true, judged: true, findings: [], diagnosis: null });
    expect(verdict.sentence).toMatch(/^PASS: dQ, dK and dV stay within/);
    expect(gradients.map(({ quantity }) => quantity.name)).toEqual(['dq', 'dk', 'dv']);
    for (const { elements } of gradients) expect(elements.unbounded).toBe(0);
  });

  it('says what each technique comes to', () => {
    const { gradients } = auditGradients(
      cases.wide.problem,
      roundedGradients(cases.wide, cases.wide.exact),
    );
    for (const { quantity, spread, techniques } of gradients) {
      const { techniques: lines, total, elements, unbounded } = techniques!;
      expect(unbounded).toBe(0);
      expect(elements).toBe(
        cases.wide.exact[quantity.name as keyof typeof cases.wide.exact].length,
      );
      const sum = (of: (line: (typeof lines)[number]) => number) =>
        lines.reduce((all, line) => all + of(line), 0);
      expect(sum(({ share }) => share)).toBeCloseTo(1, 12);
      expect(sum(({ worst }) => worst) / total.worst).toBeCloseTo(1, 12);
      expect(sum(({ rms }) => rms ** 2) / total.rms ** 2).toBeCloseTo(1, 12);
      // What the spread expects of all elements is what its techniques come to.
      expect(spread.expected / total.rms).toBeCloseTo(1, 9);
      const names: readonly string[] = lines.map(({ technique }) => technique);
      expect(names).toContain(`${quantity.name}-accumulate`);
      expect(names.includes('delta')).toBe(quantity.name !== 'dv');
      expect(names.includes('group-sum')).toBe(quantity.name !== 'dq');
      for (const { largest, worst } of lines) expect(largest).toBeGreaterThanOrEqual(worst);
    }
  });

  inTurn.each(Object.entries(gradientDamages))(
    'finds and names: %s',
    (name, { values, fails, causes }) => {
      const isFull = name.includes('LSE') || name.includes('delta');
      const given = name.includes('exchanged') ? cases.wide : isFull ? cases.full : cases.causal;
      const { verdict } = auditGradients(given.problem, roundedGradients(given, values(given)));
      expect(verdict.pass, verdict.sentence).toBe(false);
      expect([...new Set(verdict.findings.map(({ quantity }) => quantity))]).toEqual(
        expect.arrayContaining([...fails]),
      );
      expect(causes, verdict.sentence).toContain(verdict.diagnosis?.id);
    },
  );
});
