import { describe, expect, it } from 'vitest';
import type { JudgedGradientName } from '../../../src/audit/index.js';
import { faultAt } from './fault-at.js';
import { judgeSpoiled, spoiledGradient } from './gradient-cases.js';
import {
  gradientFaults,
  type GradientFault,
  type GradientStatisticName,
} from './gradient-faults.js';

/** The faults, one after the other. */
const faults = Object.entries(gradientFaults).flatMap(([name, ofGradient]) =>
  Object.entries<GradientFault>(ofGradient).map(
    ([statistic, fault]) =>
      [name as JudgedGradientName, statistic as GradientStatisticName, fault] as const,
  ),
);

describe('a fault of a gradient that one statistic sees alone', () => {
  it.each(faults)('%s, %s', (name, statistic, { of, errors }) => {
    const judge = (spoiled: Float64Array) => judgeSpoiled(of, name, spoiled);
    const at = faultAt(errors(spoiledGradient(of, name)), (spoiled) =>
      judge(spoiled).uses.get(statistic)!,
    );
    const { uses, verdict } = judge(at(1.01));
    expect([...uses].filter(([, ofLimit]) => ofLimit > 1).map(([one]) => one)).toEqual([statistic]);
    expect(verdict.findings.map(({ test }) => test)).toEqual([
      `${name}-${statistic.split(' ')[0]}`,
    ]);
    expect(verdict.pass).toBe(false);
    expect(judge(at(0.99)).verdict).toMatchObject({ pass: true, findings: [] });
  });

  it('is there for every statistic of every gradient', () => {
    const dominated = ['dsink rms tile', 'dsink rms head'];
    const known = new Set([...dominated, ...faults.map(([name, test]) => `${name} ${test}`)]);
    for (const [name, , { of }] of faults) {
      const none = spoiledGradient(of, name).exact.map(() => 0);
      for (const statistic of judgeSpoiled(of, name, none).uses.keys())
        expect(known).toContain(`${name} ${statistic}`);
    }
  });
});
