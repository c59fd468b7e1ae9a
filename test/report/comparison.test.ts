import { describe, expect, it } from 'vitest';
import type { OutputDifference } from '../../src/audit/index.js';
import {
  reportedComparison,
  type ComparedVersion,
  type ReportedComparison,
} from '../../src/report/json/index.js';
import { renderAudit } from '../../src/report/text/index.js';
import { comparedOutputs, comparedReport, splitReport } from './cases.js';

const [exact, scaled] = comparedOutputs;

/** Two outputs, the second of which differs so. */
function withCloseness(closeness: Partial<OutputDifference['closeness']>): ReportedComparison {
  const difference = scaled!.difference!;
  const changed: OutputDifference = {
    ...difference,
    closeness: { ...difference.closeness, ...closeness },
  };
  return reportedComparison([exact!, { ...scaled!, difference: changed }]);
}

describe('outputs side by side', () => {
  it('name the closer one where the test and the root mean square agree', () => {
    const close = { units: 100, firstCloser: 80, positive: 20, pValue: 1e-9, rms: [1, 2] as const };
    const closer = (change: Partial<OutputDifference['closeness']>) =>
      withCloseness({ ...close, ...change }).differences[0]!.closer;
    expect(closer({})).toBe('exact');
    expect(closer({ firstCloser: 20, positive: 80, rms: [2, 1] })).toBe('× 1.5');
    // Closer in most rows, but farther by a few that are far off.
    expect(closer({ rms: [2, 1] })).toBeNull();
    expect(closer({ pValue: 0.02 })).toBeNull();
  });

  it('count every comparison against the probability', () => {
    const many = Array.from({ length: 5 }, (_, i): ComparedVersion => ({
      ...scaled!,
      name: `${i}`,
    }));
    const { differences } = reportedComparison([exact!, ...many]);
    const { pValue } = scaled!.difference!.closeness;
    for (const { adjustedPValue } of differences)
      expect(adjustedPValue).toBe(Math.min(1, 5 * pValue));
  });

  it('are told in the text, each beside the first, within the columns', () => {
    for (const columns of [60, 80]) {
      const text = renderAudit(comparedReport, { columns });
      const flat = text.replace(/\s+/g, ' ');
      expect(flat).toMatch(/Compared rms error largest ulps bound used verdict/);
      expect(flat).toContain('× 1.5 beside exact');
      expect(flat).toContain('no row beside exact');
      expect(flat).toMatch(
        /Closer to exact exact, significantly \(Wilcoxon's signed-rank test, p = /,
      );
      expect(flat).toContain('First difference head 0, query 0');
      expect(flat).toMatch(/1 of 72 rows, 1 of 8 tiles of 64 queries, head 0 of 8/);
      for (const line of text.split('\n')) expect([...line].length).toBeLessThanOrEqual(columns);
    }
    const same = { ...scaled!, difference: { ...scaled!.difference!, differing: 0 } };
    const equal = { ...comparedReport, comparison: reportedComparison([exact!, same]) };
    expect(renderAudit(equal)).toContain('Differ  nowhere: they are the same numbers');
  });
});

describe('the parts of a split problem', () => {
  it('fail the report where one does, and are a table with their keys', () => {
    const { verdict } = splitReport;
    expect(verdict.pass).toBe(false);
    expect(verdict.sentence).toMatch(
      /^FAIL: part 1 of 2 \(keys 16 to 23\) is wrong: it holds the result of part 0/,
    );
    expect(verdict.findings.map(({ test }) => test)).toEqual(['split-part', 'split-merge']);
    expect(verdict.notes.join()).toContain('and not of equal parts');
    for (const columns of [60, 80]) {
      const text = renderAudit(splitReport, { columns });
      expect(text).toMatch(/part 0 +25 % +Infinity +PASS +keys 0 to 15/);
      expect(text).toMatch(/part 1 +25 % +Infinity +FAIL +keys 16 to 23/);
      expect(text).toMatch(/merge +beyond +FAIL/);
      for (const line of text.split('\n')) expect([...line].length).toBeLessThanOrEqual(columns);
    }
  });
});
