import type { AuditReport } from './audit-report.js';

/** The word that a verdict begins with. */
export type VerdictWord = 'PASS' | 'FAIL' | 'NOT JUDGED';

/** PASS or FAIL, or neither where no element of an output had a bound. */
export function verdictWord({ verdict, elements }: AuditReport): VerdictWord {
  if (verdict.pass) return 'PASS';
  return elements !== null && !verdict.judged && verdict.findings.length === 0
    ? 'NOT JUDGED'
    : 'FAIL';
}
