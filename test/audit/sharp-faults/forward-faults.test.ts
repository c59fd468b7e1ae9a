import { describe, expect, it } from 'vitest';
import { faultAt } from './fault-at.js';
import { judgeSpoiledOutput, spoiledOutput } from './forward-cases.js';
import { forwardFaults, type ForwardFault, type ForwardStatisticName } from './forward-faults.js';

const faults = Object.entries<ForwardFault>(forwardFaults).map(
  ([statistic, fault]) => [statistic as ForwardStatisticName, fault] as const,
);

describe('a fault of an output that one statistic sees alone', () => {
  it.each(faults)('%s', (statistic, { of, quantity, errors }) => {
    const judge = (spoiled: Float64Array) => judgeSpoiledOutput(of, quantity, spoiled);
    const at = faultAt(errors(spoiledOutput(of, quantity)), (spoiled) =>
      judge(spoiled).uses.get(statistic)!,
    );
    const { uses, verdict } = judge(at(1.01));
    expect([...uses].filter(([, use]) => use > 1).map(([name]) => name)).toEqual([statistic]);
    expect(verdict.findings.map(({ test }) => test)).toEqual([statistic.split(' ')[0]]);
    expect(verdict.pass).toBe(false);
    expect(judge(at(0.99)).verdict).toMatchObject({ pass: true, findings: [] });
  });

  it.each(['scale head', 'lse-mean head', 'lse-bound'] as const)(
    'is seen where there is a sink: %s',
    (statistic) => {
      const { quantity, errors }: ForwardFault = forwardFaults[statistic];
      const judge = (spoiled: Float64Array) => judgeSpoiledOutput('withSink', quantity, spoiled);
      const at = faultAt(errors(spoiledOutput('withSink', quantity)), (spoiled) =>
        judge(spoiled).uses.get(statistic)!,
      );
      const { findings } = judge(at(1.01)).verdict;
      expect(findings.map(({ test }) => test)).toContain(statistic.split(' ')[0]);
      expect(judge(at(0.99)).uses.get(statistic)).toBeLessThan(1);
    },
  );

  it('is there for every statistic', () => {
    const none = new Float64Array(spoiledOutput('plain', 'out').exact.length);
    const { uses } = judgeSpoiledOutput('plain', 'out', none);
    expect([...uses.keys()].sort()).toEqual(Object.keys(forwardFaults).sort());
  });
});
