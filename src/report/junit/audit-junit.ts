import { structureTests } from '../../audit/index.js';
import {
  describeWarning,
  verdictWord,
  type AuditReport,
  type ReportedFinding,
} from '../json/index.js';
import { escapeXml, xmlDocument, xmlElement, type XmlAttributes } from '../layout/index.js';

/** One test case: the findings that fail it, and, where it cannot be run, why. */
interface Leg {
  readonly name: string;
  readonly findings: readonly ReportedFinding['test'][];
  readonly skipped: (report: AuditReport) => string | null;
}

const notJudged = (report: AuditReport) =>
  report.error === null ? 'the kernel gave no output' : null;

function lseNotJudged({ lse }: AuditReport): string | null {
  if (lse === null) return 'no LSE was given';
  return Number(lse.rows) > 0 && lse.unbounded === lse.rows
    ? 'no row of the LSE has a bound'
    : null;
}

/** The test case that only audits of a live kernel have. */
const executionLeg: Leg = { name: 'execution', findings: ['execution'], skipped: () => null };

const judgementLegs: readonly Leg[] = [
  { name: 'non-finite', findings: ['non-finite'], skipped: notJudged },
  { name: 'element bound', findings: ['element-bound'], skipped: notJudged },
  {
    name: 'spread',
    findings: ['element-spread', 'rms'],
    skipped: (report) =>
      notJudged(report) ??
      (report.spread?.results.length === 0 ? 'no element has an error that is at random' : null),
  },
  ...structureTests
    .filter((test) => test !== 'lse-mean')
    .map((test) => ({
      name: `structure ${test}`,
      findings: [test],
      skipped: (report: AuditReport) =>
        notJudged(report) ??
        report.verdict.untested.find((one) => one.test === test)?.reason ??
        null,
    })),
  {
    name: 'LSE',
    findings: ['lse-non-finite', 'lse-bound', 'lse-mean'],
    skipped: (report) => notJudged(report) ?? lseNotJudged(report),
  },
];

function legsOf({ inputs }: AuditReport): readonly Leg[] {
  const legs = [boundLeg, ...judgementLegs];
  return inputs.command === null ? legs : [executionLeg, ...legs];
}

type Outcome =
  | { readonly skipped: string }
  | { readonly failures: readonly Pick<ReportedFinding, 'test' | 'statement'>[] };

/** Fails where no element has a bound: the others have nothing against the output then. */
const boundLeg: Leg = { name: 'has a bound', findings: [], skipped: notJudged };

function outcomeOf(leg: Leg, report: AuditReport): Outcome {
  if (leg === boundLeg && verdictWord(report) === 'NOT JUDGED')
    return { failures: [{ test: 'element-bound', statement: report.verdict.sentence }] };
  const failures = report.verdict.findings.filter(({ test }) => leg.findings.includes(test));
  const skipped = leg.skipped(report);
  return failures.length === 0 && skipped !== null ? { skipped } : { failures };
}

function countWhere(outcomes: readonly Outcome[], test: (outcome: Outcome) => boolean): number {
  return outcomes.filter(test).length;
}

const isSkipped = (outcome: Outcome) => 'skipped' in outcome;
const isFailure = (outcome: Outcome) => 'failures' in outcome && outcome.failures.length > 0;

function totals(outcomes: readonly Outcome[], seconds: number): XmlAttributes {
  return {
    tests: outcomes.length,
    failures: countWhere(outcomes, isFailure),
    errors: 0,
    skipped: countWhere(outcomes, isSkipped),
    time: seconds.toFixed(3),
  };
}

/** Names a report within a run: the problem's file, and the command or tensor that was judged. */
function suiteName({ inputs: { problem, output, command } }: AuditReport): string {
  if (command !== null) return `${problem.path} ${command}`;
  const file = output === null || output.path === problem.path ? [] : [output.path];
  return [problem.path, ...file, output?.tensor].filter((part) => part).join(' ');
}

/** The cause and the evidence for it, a line each; nothing where there is no diagnosis. */
function causeLines({ verdict: { diagnosis } }: AuditReport): string[] {
  if (diagnosis === null) return [];
  return [`Cause: ${diagnosis.sentence}`, ...diagnosis.evidence];
}

function testCase(leg: Leg, outcome: Outcome, classname: string, report: AuditReport): string {
  const attributes = { name: leg.name, classname };
  if ('skipped' in outcome)
    return xmlElement('testcase', attributes, [
      xmlElement('skipped', { message: outcome.skipped }),
    ]);
  const { failures } = outcome;
  if (failures.length === 0) return xmlElement('testcase', attributes);
  // At most one failure per test case: readers of JUnit disagree about more.
  const statement = failures.map(({ statement }) => statement).join('; ');
  const type = failures.map(({ test }) => test).join(' ');
  return xmlElement('testcase', attributes, [
    xmlElement(
      'failure',
      { message: statement, type },
      [statement, ...causeLines(report)].map(escapeXml),
    ),
  ]);
}

/** Inputs that were not used, as the suite's output; nothing where all were. */
function warningLines({ warnings }: AuditReport): string[] {
  if (warnings.length === 0) return [];
  const lines = warnings.map((warning) => `Not used: ${describeWarning(warning)}.`);
  return [xmlElement('system-out', {}, lines.map(escapeXml))];
}

/**
 * Reports as JUnit XML 1.0, UTF-8: a suite per report, a test case per test that takes part in the
 * verdict. What fails carries the finding's statement and, in its text, the diagnosis; tests that could not be run are skipped.
 * Inputs that were not used are the suite's output. Times are in seconds; single tests have none, as they are not timed.
 */
export function renderJunit(reports: readonly AuditReport[]): string {
  const suites = reports.map((report) => {
    const legs = legsOf(report);
    return { report, legs, outcomes: legs.map((leg) => outcomeOf(leg, report)) };
  });
  const content = suites.map(({ report, legs, outcomes }) => {
    const name = suiteName(report);
    return xmlElement(
      'testsuite',
      { name, ...totals(outcomes, report.seconds), timestamp: report.created },
      [
        ...legs.map((leg, index) => testCase(leg, outcomes[index], name, report)),
        ...warningLines(report),
      ],
    );
  });
  const all = totals(
    suites.flatMap(({ outcomes }) => outcomes),
    reports.reduce((sum, { seconds }) => sum + seconds, 0),
  );
  const root = xmlElement('testsuites', { name: 'flashproof', ...all }, content);
  return xmlDocument(root);
}
