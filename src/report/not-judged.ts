import type { ElementTest, ErrorProfile, LseTest } from '../audit/index.js';
import type { JudgedReport } from './audit-report.js';
import { fromReported } from './report-number.js';
import { testLabel } from './test-words.js';

/**
 * "the tests truncation, dispersion, since the kernel declares how it computes": the structure tests that could
 * not be made, a clause for each reason. That of the LSE's mean is left out where no LSE was given.
 */
function untestedClauses({ verdict, lse }: JudgedReport): string[] {
  const untested = verdict.untested.filter(({ test }) => test !== 'lse-mean' || lse !== null);
  return [...new Set(untested.map(({ reason }) => reason))].map((reason) => {
    const names = untested
      .filter((one) => one.reason === reason)
      .map(({ test }) => testLabel(test));
    return `the ${names.length === 1 ? 'test' : 'tests'} ${names.join(', ')}, since ${reason}`;
  });
}

/** What the verdict says nothing about, a clause each. */
export function notJudged(report: JudgedReport): string[] {
  const lse = fromReported<LseTest | null>(report.lse);
  const { elements, unbounded } = fromReported<ElementTest>(report.elements);
  const { nonFinite } = fromReported<ErrorProfile>(report.error);
  return [
    ...(lse === null ? ['the LSE, since none was given'] : []),
    ...(unbounded > 0 ? [`${unbounded} of ${elements} elements, which have no bound`] : []),
    ...(lse !== null && lse.unbounded > 0
      ? [`the LSE of ${lse.unbounded} of ${lse.rows} rows, which have no bound`]
      : []),
    ...(nonFinite.oracle > 0
      ? [`the size of ${nonFinite.oracle} elements that are exactly NaN or infinite`]
      : []),
    ...untestedClauses(report),
  ];
}
