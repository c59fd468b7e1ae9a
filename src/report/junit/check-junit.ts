import type { CheckFinding, CheckReport, ReportedProperty } from '../json/check/index.js';
import { describeCheckedProblem } from '../json/index.js';
import {
  describeFinding,
  describeKernel,
  describeTriedSizes,
  triedSizesHeading,
} from '../text/index.js';
import { escapeXml, quoteShellCommand, xmlDocument, xmlElement } from '../layout/index.js';
import { formatCount } from '../../words/index.js';

/** The cause that a property shares with others, and those others; nothing where it has none. */
function seenByOthers(name: string, findings: readonly CheckFinding[]): string[] {
  const finding = findings.find(({ properties }) => properties.some((other) => other === name));
  if (finding === undefined || finding.properties.length === 1) return [];
  const { title, properties } = finding;
  return [`One finding of ${properties.length}: ${title} (${properties.join(', ')})`];
}

/** The text of a failed test case, line by line. */
function violationLines(
  { name, statement, reason, violation }: ReportedProperty,
  findings: readonly CheckFinding[],
): string[] {
  if (violation === null) return [];
  const { values, saved, replay, problem, regime } = violation;
  return [
    violation.statement,
    ...seenByOthers(name, findings),
    ...(violation.cause === null ? [] : [`Cause: probably that ${violation.cause}.`]),
    ...(violation.hint === null ? [] : [`Hint: ${violation.hint}.`]),
    `Law: ${statement}. ${reason}`,
    `Problem: ${describeCheckedProblem(problem)}; regime ${regime}`,
    ...(values ?? []),
    `Found: ${describeFinding(violation)}`,
    ...(saved === null ? [] : [`Saved: ${saved}`]),
    ...(replay === null ? [] : [`Replay: ${quoteShellCommand(replay)}`]),
  ];
}

/** Number of problems that a property was tried on, and their largest sizes. */
function describeTried({ tried, sizes }: ReportedProperty): string {
  const upTo = sizes === null ? '' : ` up to ${triedSizesHeading}: ${describeTriedSizes(sizes)}`;
  return `tried on ${formatCount(tried, 'problem')}${upTo}`;
}

/** The reason why a property was not tried, and whether it should have been. */
function skippedMessage({ result, skipped }: ReportedProperty): string {
  return result === 'untried' ? `never tried: ${skipped}` : (skipped ?? '');
}

function testCase(
  property: ReportedProperty,
  findings: readonly CheckFinding[],
  classname: string,
): string {
  const { name, seconds, skipped, violation } = property;
  const attributes = { name, classname, time: seconds.toFixed(3) };
  const tried = xmlElement('system-out', {}, [escapeXml(describeTried(property))]);
  if (violation !== null) {
    const failure = { message: violation.statement, type: name };
    const text = violationLines(property, findings).map(escapeXml);
    return xmlElement('testcase', attributes, [xmlElement('failure', failure, text), tried]);
  }
  return xmlElement(
    'testcase',
    attributes,
    skipped === null ? [tried] : [xmlElement('skipped', { message: skippedMessage(property) })],
  );
}

/** The test case that checks whether a command can be run at all; emulated kernels have none. */
function executionCases({ kernel, execution }: CheckReport, classname: string): string[] {
  if (kernel.command === null) return [];
  const attributes = { name: 'execution', classname };
  if (execution === null) return [xmlElement('testcase', attributes)];
  const failure = xmlElement('failure', { message: execution, type: 'execution' }, [
    escapeXml(execution),
  ]);
  return [xmlElement('testcase', attributes, [failure])];
}

/**
 * Reports a check as JUnit XML 1.0, UTF-8: one suite, a test case per property with the seconds that it
 * took. A violated property has its statement and, in its text, the law, the problem and the command
 * that shows it again.
 */
export function renderCheckJunit(report: CheckReport): string {
  const { properties, findings, seconds, created, execution } = report;
  const name = `flashproof check ${describeKernel(report)}`;
  const cases = [
    ...executionCases(report, name),
    ...properties.map((property) => testCase(property, findings, name)),
  ];
  const count = (result: ReportedProperty['result']) =>
    properties.filter((property) => property.result === result).length;
  const totals = {
    tests: cases.length,
    failures: count('violated') + (execution === null ? 0 : 1),
    errors: 0,
    skipped: count('skipped') + count('untried'),
    time: seconds.toFixed(3),
  };
  const suite = xmlElement('testsuite', { name, ...totals, timestamp: created }, cases);
  return xmlDocument(xmlElement('testsuites', { name: 'flashproof', ...totals }, [suite]));
}
