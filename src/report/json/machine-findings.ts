import { stated } from '../../words/index.js';
import type { ReportedFinding } from './audit-report.js';

/** The machine's findings in the compiled kernel that made the judged outputs: clauses that follow its name. */
export interface MachineClauses {
  /** Faults that do not depend on the numbers. */
  readonly faults: readonly string[];
  /** Further remarks for the reader. */
  readonly notes: readonly string[];
}

/** The subject of sentences about a compiled kernel. */
const subject = 'the compiled kernel';

/** The part of a report that the machine's findings change. */
interface Judged {
  readonly verdict: {
    readonly sentence: string;
    readonly notes: readonly string[];
    readonly findings: readonly ReportedFinding[];
  };
}

/** A report with the machine's findings, which fails where there is a fault, whatever the numbers are. */
export function withMachineFindings<Report extends Judged>(
  report: Report,
  { faults, notes }: MachineClauses,
): Report {
  const { verdict } = report;
  const findings = faults.map((fault): ReportedFinding => {
    return { quantity: null, test: 'machine', isWorstCase: true, statement: `${subject} ${fault}` };
  });
  const noted = {
    ...verdict,
    notes: [...verdict.notes, ...notes.map((note) => `${subject} ${note}`)],
  };
  if (findings.length === 0) return { ...report, verdict: noted };
  return {
    ...report,
    verdict: {
      ...noted,
      pass: false,
      ...stated('FAIL', `${findings[0].statement}; its numbers alone: ${verdict.sentence}`),
      findings: [...findings, ...verdict.findings],
    },
  };
}
