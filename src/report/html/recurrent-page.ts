import {
  describeFileProblem,
  describeUnsampledHeads,
  describeWarning,
  type ChainReport,
  type LinkReport,
  type RecurrentReport,
} from '../json/index.js';
import { element, join, type Html } from '../layout/index.js';
import {
  failedRecurrentTests,
  failureSection,
  identitiesSection,
  recurrentNotes,
  recurrentSection,
  recurrentTestsSection,
} from '../text/index.js';
import { sectionTable } from './figure.js';
import { contents, embeddedReport, pageMain, subject } from './html-report.js';
import type { Part } from './page-parts.js';
import { htmlPage, verdictBanner } from './page.js';
import { reproduceContent, type ReproduceCommand } from './provenance.js';

/** The head of the page of a report without plots: the verdict, and what it is about. */
export function plainHeader(report: RecurrentReport | LinkReport | ChainReport): Html {
  const { verdict, warnings } = report;
  return element(
    'header',
    {},
    element('h1', {}, subject(report)),
    verdictBanner(verdict.status, verdict.sentence, verdict.pass),
    element('p', { class: 'muted' }, describeFileProblem(report)),
    report.kind === 'recurrent-audit' && report.sample !== null
      ? element('p', { class: 'warning' }, `Not judged: ${describeUnsampledHeads(report.sample)}.`)
      : '',
    verdict.notes.map((note) => element('p', { class: 'warning' }, `Note: ${note}.`)),
    warnings.map((warning) =>
      element('p', { class: 'warning' }, `Not used: ${describeWarning(warning)}.`),
    ),
  );
}

/** The parts with the numbers of what was judged; none where the kernel gave nothing. */
function numberParts(report: RecurrentReport): Part[] {
  const [judged, tests] = [recurrentSection(report), recurrentTestsSection(report)];
  const identities = identitiesSection(report);
  if (judged === null || tests === null) return [];
  return [
    {
      id: 'judged',
      title: 'Quantities',
      content: join(
        sectionTable('Quantities', judged),
        element('p', { class: 'muted' }, recurrentNotes(report) ?? ''),
      ),
    },
    ...(identities === null
      ? []
      : [
          {
            id: 'identities',
            title: 'Identities',
            content: sectionTable('Sums that are one number', identities),
          },
        ]),
    { id: 'tests', title: 'Tests', content: sectionTable('Every test', tests) },
  ];
}

function partsOf(report: RecurrentReport, commands: readonly ReproduceCommand[]): Part[] {
  const failure = failureSection(report);
  const failed = failedRecurrentTests(report);
  const { findings, diagnosis } = report.verdict;
  const clauses = [...findings.map(({ statement }) => statement), ...(diagnosis?.evidence ?? [])];
  return [
    ...(failure === null && failed === null && clauses.length === 0
      ? []
      : [
          {
            id: 'failure',
            title: 'Failure',
            content: join(
              failure === null ? '' : sectionTable('Cause and place', failure),
              failed === null ? '' : sectionTable('Tests that fail by most', failed),
              element(
                'ul',
                {},
                clauses.map((clause) => element('li', {}, `${clause}.`)),
              ),
            ),
          },
        ]),
    ...numberParts(report),
    { id: 'reproduce', title: 'Reproduce', content: reproduceContent(commands) },
  ];
}

/** The report on a kernel of linear attention as one HTML page that loads nothing: the tables of the terminal, and the JSON report. */
export function renderRecurrentPage(
  report: RecurrentReport,
  commands: readonly ReproduceCommand[],
): string {
  const parts = partsOf(report, commands);
  return htmlPage({
    title: subject(report),
    version: report.tool.version,
    body: [plainHeader(report), contents(parts), pageMain(parts), embeddedReport(report)],
  });
}
