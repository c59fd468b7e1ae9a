import { findingTest, structureQuantity, structureTests } from '../../audit/index.js';
import { quantities, type Quantity } from '../../problem/index.js';
import {
  describeHeadSample,
  describeSample,
  describeUnsampled,
  describeUnsampledHeads,
  describeWarning,
  missingQuantities,
  type AuditReport,
  type ChainReport,
  type FileReport,
  type LinkReport,
  type RecurrentReport,
  type ReportedFinding,
} from '../json/index.js';
import { causeLines } from './cause-lines.js';
import { escapeXml, xmlDocument, xmlElement, type XmlAttributes } from '../layout/index.js';

/** One test case: the findings that fail it, and, where it cannot be run, the reason. */
interface Leg {
  readonly name: string;
  readonly isOf: (finding: ReportedFinding) => boolean;
  readonly skipped: string | null;
}

/** The reason why no part of a quantity is tested; null where it is judged. */
function notGiven(report: AuditReport, { name, label }: Pick<Quantity, 'name' | 'label'>) {
  if (report.outputs === null)
    return report.gradients === undefined
      ? 'the kernel gave no output'
      : `no ${label} was given; the gradients are judged alone`;
  return report.outputs.some((output) => output.name === name) ? null : `no ${label} was given`;
}

/** The test cases of a quantity of vectors; those of the output have bare names. */
function vectorLegs(report: AuditReport, quantity: Words): Leg[] {
  const skipped = notGiven(report, quantity);
  const output = report.outputs?.find(({ name }) => name === quantity.name);
  const named = (name: string) => (quantity.name === 'out' ? name : `${quantity.label} ${name}`);
  const tests = (...faults: readonly Parameters<typeof findingTest>[1][]) => {
    const names = faults.map((fault) => findingTest(quantity, fault));
    return ({ test }: ReportedFinding) => names.some((name) => name === test);
  };
  const isPremise = ({ test, quantity: of }: ReportedFinding) =>
    test === 'premise' && of === quantity.name;
  const isAtRandom = output?.row !== 'vector' || output.spread.results.length > 0;
  return [
    { name: named('non-finite'), isOf: tests('non-finite'), skipped },
    { name: named('element bound'), isOf: tests('bound'), skipped },
    {
      name: named('spread'),
      isOf: tests('spread', 'rms'),
      skipped: skipped ?? (isAtRandom ? null : 'no element has an error that is at random'),
    },
    ...structureTests
      .filter((test) => structureQuantity(test) === quantity.name)
      .map((test) => ({
        name: `structure ${test}`,
        isOf: (finding: ReportedFinding) => finding.test === test,
        skipped:
          skipped ?? report.verdict.untested.find((one) => one.test === test)?.reason ?? null,
      })),
    ...(report.verdict.findings.some(isPremise)
      ? [{ name: 'declared premise', isOf: isPremise, skipped: null }]
      : []),
  ];
}

/** The test case of a quantity that is one number a row. */
function numberLeg(report: AuditReport, quantity: Words): Leg {
  const { name, label, prose } = quantity;
  const output = report.outputs?.find((one) => one.name === name);
  const isUnbounded =
    output?.row === 'number' &&
    Number(output.numbers.rows) > 0 &&
    output.numbers.unbounded === output.numbers.rows;
  return {
    name: label,
    isOf: (finding) => finding.quantity === name,
    skipped: notGiven(report, quantity) ?? (isUnbounded ? `no row of ${prose} has a bound` : null),
  };
}

/** The test cases of the gradients that are judged; none where there are none. */
function gradientLegs({ gradients }: AuditReport): Leg[] {
  return (gradients?.gradients ?? []).flatMap(({ name, label, structure, spread }) => {
    const leg = (words: string, tests: readonly string[], skipped: string | null = null): Leg => ({
      name: `${label} ${words}`,
      isOf: ({ test }) => tests.some((one) => test === `${name}-${one}`),
      skipped,
    });
    return [
      leg('non-finite', ['non-finite']),
      leg('element bound', ['bound']),
      leg(
        'spread',
        ['spread', 'rms'],
        spread.results.length > 0 ? null : 'no element has an error that is at random',
      ),
      leg(
        'sums',
        ['scale', 'sum', 'pairing'],
        structure.length > 0
          ? null
          : name === 'dsink'
            ? 'there is one number of each head'
            : 'no row is finite, not zero, and errs by little enough',
      ),
    ];
  });
}

type Words = Pick<Quantity, 'name' | 'label' | 'prose' | 'row'>;

/** The quantities with test cases in a report: the judged ones, and those that were expected and not given. */
function listedQuantities(report: AuditReport): readonly Words[] {
  return report.outputs === null
    ? quantities.filter(({ isExpected }) => isExpected)
    : [...report.outputs, ...missingQuantities(report)];
}

/** Whether a finding is about the parts of a split problem, or their merge. */
function isOfParts({ test }: Pick<ReportedFinding, 'test'>): boolean {
  return test === 'split-part' || test === 'split-merge';
}

/** The test that fails where no element has a bound: the other tests then find no fault in the output. */
const boundLeg = 'has a bound';

/**
 * The test that fails where the kernel's process gave nothing to judge, and for findings of the machine that ran it.
 */
const executionLeg = 'execution';

/** Fails by what is of no test of numbers. */
const executionOf: Leg = {
  name: executionLeg,
  isOf: ({ test }) => test === 'execution' || test === 'machine',
  skipped: null,
};

/** The test cases of linear attention: four for each quantity. */
function recurrentLegs({ quantities, inputs }: RecurrentReport): Leg[] {
  const skipped = quantities.length === 0 ? 'the kernel gave no output' : null;
  return [
    ...(inputs.command === null ? [] : [executionOf]),
    { name: boundLeg, isOf: () => false, skipped },
    ...quantities.flatMap((quantity) => {
      const faults = [['non-finite'], ['bound'], ['spread', 'rms']] as const;
      const tests = faults.map((some) => some.map((fault) => findingTest(quantity, fault)));
      const ofElements: readonly string[] = tests.flat();
      const names = ['non-finite', 'element bound', 'spread'];
      const leg = (words: string, isOf: (test: string) => boolean): Leg => ({
        name: `${quantity.label} ${words}`,
        isOf: (finding) => finding.quantity === quantity.name && isOf(finding.test),
        skipped: null,
      });
      return [
        ...names.map((words, i) => leg(words, (test) => tests[i].some((one) => one === test))),
        leg('statistics', (test) => !ofElements.includes(test)),
      ];
    }),
  ];
}

/** The test cases of a link of the decode chain: one for each check. */
function linkLegs({ checks }: LinkReport): Leg[] {
  return [
    { name: boundLeg, isOf: () => false, skipped: null },
    ...checks.map(({ name, label, unjudged }) => ({
      name: label,
      isOf: ({ quantity }: ReportedFinding) => quantity === name,
      skipped: unjudged,
    })),
  ];
}

/** The test cases of a chain: one for each link, and one for each tensor that one link handed to another. */
function chainLegs({ links, checks }: ChainReport): Leg[] {
  const leg = (name: string, of: string, skipped: string | null): Leg => ({
    name,
    isOf: ({ quantity }) => quantity === of,
    skipped,
  });
  return [
    { name: boundLeg, isOf: () => false, skipped: null },
    ...links.map(({ name, report, sentence }) =>
      leg(name, name, report === null ? sentence : null),
    ),
    ...checks.map(({ name, label, unjudged }) => leg(label, name, unjudged)),
  ];
}

function legsOf(report: FileReport): readonly Leg[] {
  if (report.kind === 'chain-audit') return chainLegs(report);
  if (report.kind === 'link-audit') return linkLegs(report);
  if (report.kind === 'recurrent-audit') return recurrentLegs(report);
  const { command } = report.inputs;
  const [main, ...others] = listedQuantities(report);
  const parts: Leg = {
    name: 'parts',
    isOf: isOfParts,
    skipped:
      report.splits?.parts.every(({ status }) => status === 'NOT JUDGED') === true
        ? 'no part has a bound'
        : null,
  };
  return [
    // Only audits of a running kernel have this test case.
    ...(command === null ? [] : [executionOf]),
    ...(report.splits === null ? [] : [parts]),
    { name: boundLeg, isOf: () => false, skipped: notGiven(report, main) },
    ...[main, ...others].flatMap((quantity) =>
      quantity.row === 'vector' ? vectorLegs(report, quantity) : [numberLeg(report, quantity)],
    ),
    ...gradientLegs(report),
  ];
}

type Outcome =
  | { readonly skipped: string }
  | { readonly failures: readonly Pick<ReportedFinding, 'test' | 'statement'>[] };

/** Whether a kernel gave nothing to judge, or not the output. */
function isWithoutOutput(report: FileReport): boolean {
  if (report.kind === 'audit') return report.outputs === null;
  return report.kind === 'recurrent-audit' && report.quantities.length === 0;
}

function outcomeOf(leg: Leg, report: FileReport): Outcome {
  const [unjudged, test] = isWithoutOutput(report)
    ? ([executionLeg, 'execution'] as const)
    : ([boundLeg, 'element-bound'] as const);
  if (leg.name === unjudged && report.verdict.status === 'NOT JUDGED')
    return { failures: [{ test, statement: report.verdict.sentence }] };
  const failures = report.verdict.findings.filter(leg.isOf);
  const { skipped } = leg;
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

/** The name of a report within a run: the problem's file, and the judged command or tensor. */
function suiteName({ inputs: { problem, outputs, command } }: FileReport): string {
  const output = outputs.length === 0 ? null : outputs[0];
  if (command !== null) return `${problem.path} ${command}`;
  const file = output === null || output.path === problem.path ? [] : [output.path];
  return [problem.path, ...file, output?.tensor].filter((part) => part).join(' ');
}

function testCase(leg: Leg, outcome: Outcome, classname: string, report: FileReport): string {
  const attributes = { name: leg.name, classname };
  if ('skipped' in outcome)
    return xmlElement('testcase', attributes, [
      xmlElement('skipped', { message: outcome.skipped }),
    ]);
  const { failures } = outcome;
  if (failures.length === 0) return xmlElement('testcase', attributes);
  // At most one failure per test case: readers of JUnit disagree about more.
  const { sentence } = report.verdict;
  const statement = failures.map(({ statement }) => statement).join('; ');
  const type = failures.map(({ test }) => test).join(' ');
  return xmlElement('testcase', attributes, [
    xmlElement(
      'failure',
      { message: sentence, type },
      [statement, ...causeLines(report)].map(escapeXml),
    ),
  ]);
}

/** What of a sample was judged and what was not; nothing where all was. */
function sampleLines(report: FileReport): string[] {
  if (report.kind === 'link-audit' || report.sample === null) return [];
  const [judged, left] =
    report.kind === 'audit'
      ? [describeSample(report.sample), describeUnsampled(report.sample)]
      : [describeHeadSample(report.sample, report.problem), describeUnsampledHeads(report.sample)];
  return [`Judged: ${judged}.`, `Not judged: ${left}.`];
}

/**
 * The rows and gradients that were not judged and the inputs that were not used, as the suite's output; nothing where
 * there are none.
 */
function warningLines(report: FileReport): string[] {
  const { warnings } = report;
  const gradients = report.kind === 'audit' ? report.gradients : undefined;
  const lines = [
    ...sampleLines(report),
    ...(gradients?.notJudged ?? []).map((clause) => `Not judged: ${clause}.`),
    ...warnings.map((warning) => `Not used: ${describeWarning(warning)}.`),
  ];
  if (lines.length === 0) return [];
  return [xmlElement('system-out', {}, lines.map(escapeXml))];
}

/**
 * Reports as JUnit XML 1.0, UTF-8: a suite per report, a test case per test that takes part in the verdict. A failing test case has the verdict's
 * sentence as its message and, in its text, the finding's statement, the cause with its place and evidence, and the worst row; tests that could not be
 * run are skipped. Rows that were not judged and inputs that were not used are the suite's output. Times are in seconds; single tests have none, since
 * they are not timed.
 */
export function renderJunit(reports: readonly FileReport[]): string {
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
