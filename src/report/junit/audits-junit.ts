import { quantities } from '../../problem/index.js';
import {
  describeWarning,
  missingQuantities,
  type AuditedFile,
  type ChainReport,
  type AuditsReport,
  type FileReport,
  type LinkReport,
  type RecurrentReport,
} from '../json/index.js';
import { causeLines } from './cause-lines.js';
import { escapeXml, xmlDocument, xmlElement, type XmlAttributes } from '../layout/index.js';

/** The outcome of one test case. */
type Outcome =
  | { readonly kind: 'pass' }
  | { readonly kind: 'skipped' | 'error'; readonly message: string }
  | {
      readonly kind: 'failure';
      /** The verdict's sentence. */
      readonly message: string;
      readonly text: string;
      readonly type: string;
    };

/** A test case: a quantity of a file. */
interface Case {
  readonly name: string;
  readonly outcome: Outcome;
}

/** The findings of a report about a quantity, or about none. */
function outcomeOf({ verdict }: FileReport, quantity: string | null): Outcome {
  const findings = verdict.findings.filter((finding) => finding.quantity === quantity);
  if (findings.length === 0) return { kind: 'pass' };
  return {
    kind: 'failure',
    message: verdict.sentence,
    text: findings.map(({ statement }) => statement).join('; '),
    type: findings.map(({ test }) => test).join(' '),
  };
}

/** The failure of a test whose output is not judged, since that is no pass; null for a judged output. */
function unjudgedAs(report: FileReport, type: string): Outcome | null {
  return report.verdict.status === 'NOT JUDGED'
    ? { kind: 'failure', message: report.verdict.sentence, text: report.verdict.sentence, type }
    : null;
}

/** The test cases of a file of linear attention: one for each quantity. */
function recurrentCases(report: RecurrentReport): Case[] {
  return report.quantities.map(({ name, label }, i) => ({
    name: label,
    outcome: (i === 0 ? unjudgedAs(report, 'element-bound') : null) ?? outcomeOf(report, name),
  }));
}

/** The test cases of a link of the decode chain: one for each check. */
function linkCases(report: LinkReport): Case[] {
  return report.checks.map(({ name, label, unjudged, isRequired }) => {
    if (unjudged === null) return { name: label, outcome: outcomeOf(report, name) };
    const failure = isRequired ? unjudgedAs(report, 'link') : null;
    return { name: label, outcome: failure ?? { kind: 'skipped', message: unjudged } };
  });
}

/** The test cases of a chain: one for each link, and one for each tensor that one link handed to another. */
function chainCases(report: ChainReport): Case[] {
  return [
    ...report.links.map(({ name, status, sentence, report: own }): Case => {
      if (status === 'ERROR') return { name, outcome: { kind: 'error', message: sentence } };
      if (own === null) return { name, outcome: { kind: 'skipped', message: sentence } };
      return { name, outcome: unjudgedAs(own, 'link') ?? outcomeOf(report, name) };
    }),
    ...report.checks.map(({ name, label, unjudged }): Case => ({
      name: label,
      outcome: unjudged === null ? outcomeOf(report, name) : { kind: 'skipped', message: unjudged },
    })),
  ];
}

/** The test cases of one file: one for each quantity that is judged or expected. */
function casesOf({ report, error }: AuditedFile): Case[] {
  const skip = (name: string, message: string): Case => ({
    name,
    outcome: { kind: 'skipped', message },
  });
  const expected = quantities.filter(({ isExpected }) => isExpected);
  if (report === null)
    return [
      { name: 'file', outcome: { kind: 'error', message: error ?? '' } },
      ...expected.map(({ label }) => skip(label, 'the file could not be judged')),
    ];
  if (report.kind === 'recurrent-audit') return recurrentCases(report);
  if (report.kind === 'link-audit') return linkCases(report);
  if (report.kind === 'chain-audit') return chainCases(report);
  const ofGradients = (report.gradients?.gradients ?? []).map(({ name, label }): Case => ({
    name: label,
    outcome: outcomeOf(report, name),
  }));
  if (report.outputs === null && report.gradients !== undefined)
    return [...expected.map(({ label }) => skip(label, `no ${label} was given`)), ...ofGradients];
  if (report.outputs === null)
    return [
      { name: 'execution', outcome: unjudgedAs(report, 'execution') ?? outcomeOf(report, null) },
      ...expected.map(({ label }) => skip(label, 'the kernel gave no output')),
    ];
  const [main, ...others] = report.outputs;
  return [
    ...(report.splits === null ? [] : [{ name: 'parts', outcome: outcomeOf(report, null) }]),
    {
      name: main.label,
      outcome: unjudgedAs(report, 'element-bound') ?? outcomeOf(report, main.name),
    },
    ...others.map(({ name, label }) => ({ name: label, outcome: outcomeOf(report, name) })),
    ...missingQuantities(report).map(({ label }) => skip(label, `no ${label} was given`)),
    ...ofGradients,
  ];
}

function testCase({ name, outcome }: Case, { path, report }: AuditedFile): string {
  const attributes = { name, classname: path };
  if (outcome.kind === 'pass') return xmlElement('testcase', attributes);
  const { kind, message } = outcome;
  const cause = report === null ? [] : causeLines(report);
  const lines = kind === 'failure' ? [outcome.text, ...cause] : [];
  return xmlElement('testcase', attributes, [
    xmlElement(
      kind,
      kind === 'failure' ? { message, type: outcome.type } : { message },
      lines.map(escapeXml),
    ),
  ]);
}

function totals(cases: readonly Case[], seconds: number): XmlAttributes {
  const count = (kind: Outcome['kind']) => cases.filter(({ outcome }) => outcome.kind === kind);
  return {
    tests: cases.length,
    failures: count('failure').length,
    errors: count('error').length,
    skipped: count('skipped').length,
    time: seconds.toFixed(3),
  };
}

/**
 * A report of several files as JUnit XML 1.0, UTF-8: a suite a file, with a test case for each quantity. A
 * file that could not be judged has an error, a quantity that is expected and was not given is skipped. A
 * failure has the verdict's sentence and, in its text, the findings and the diagnosis; inputs that were not used are the suite's output.
 */
export function renderAuditsJunit({ files, seconds, created }: AuditsReport): string {
  const suites = files.map((file) => ({ file, cases: casesOf(file) }));
  const content = suites.map(({ file, cases }) => {
    const { path, report } = file;
    const warnings = report?.warnings ?? [];
    const lines = warnings.map((warning) => escapeXml(`Not used: ${describeWarning(warning)}.`));
    return xmlElement(
      'testsuite',
      { name: path, ...totals(cases, report?.seconds ?? 0), timestamp: report?.created ?? created },
      [
        ...cases.map((one) => testCase(one, file)),
        ...(lines.length === 0 ? [] : [xmlElement('system-out', {}, lines)]),
      ],
    );
  });
  const all = totals(
    suites.flatMap(({ cases }) => cases),
    seconds,
  );
  return xmlDocument(xmlElement('testsuites', { name: 'flashproof', ...all }, content));
}
