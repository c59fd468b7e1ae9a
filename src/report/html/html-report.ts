import {
  type AuditReport,
  type FileReport,
  describeReportedProblem,
  describeSample,
  describeWarning,
} from '../json/index.js';
import { element, raw, type Html } from '../layout/index.js';
import { notJudged } from '../text/index.js';
import { loadDrawing } from './drawing.js';
import { htmlPage, verdictBanner } from './page.js';
import { type HtmlReport, type Judged, type Part, partsOf } from './page-parts.js';
import { glances } from './heat-cells.js';
import { worstRowFigures } from './findings.js';
import { figuresOfMerit, worstHeadOf } from './report-sections.js';

/** The report for machines. No text in it can end the script early. */
export function embeddedReport(report: FileReport): Html {
  const json = JSON.stringify(report).replaceAll('<', '\\u003c');
  return raw(`<script type="application/json" id="report">${json}</script>`);
}

/** What a report is about, as a title. */
export function subject({ inputs: { problem, outputs, command } }: FileReport): string {
  const judged = command ?? (outputs.length === 0 ? 'an output' : outputs[0].tensor);
  return `Audit of ${judged} on ${problem.path}`;
}

/** The head of the page: the verdict, and what it is about. */
function pageHeader(report: AuditReport, judged: Judged | null): Html {
  const { verdict, problem, sample, warnings } = report;
  return element(
    'header',
    {},
    element('h1', {}, subject(report)),
    element(
      'div',
      { class: 'first' },
      element(
        'div',
        {},
        verdictBanner(verdict.status, verdict.sentence, verdict.pass),
        worstRowFigures(report),
        element('p', { class: 'muted' }, describeReportedProblem(problem)),
      ),
      // A sample of rows has no map.
      judged === null || judged.report.sample !== null
        ? ''
        : glances(judged.plots.heat, worstHeadOf(judged.report, judged.plots.heat)),
    ),
    sample === null ? '' : element('p', { class: 'muted' }, `Judged: ${describeSample(sample)}.`),
    verdict.notes.map((note) => element('p', {}, `Note: ${note}.`)),
    warnings.map((warning) =>
      element('p', { class: 'warning' }, `Not used: ${describeWarning(warning)}.`),
    ),
    judged === null
      ? ''
      : [
          figuresOfMerit(judged.report),
          notJudged(judged.report).map((clause) =>
            element('p', { class: 'muted' }, `Not judged: ${clause}.`),
          ),
        ],
  );
}

/** The list of parts, with links. */
export function contents(parts: readonly Part[]): Html {
  return element(
    'nav',
    { 'aria-label': 'Contents' },
    element(
      'ul',
      {},
      parts.map(({ id, title }) => element('li', {}, element('a', { href: `#${id}` }, title))),
    ),
  );
}

/** The parts one after the other. */
export function pageMain(parts: readonly Part[]): Html {
  return element(
    'main',
    { id: 'content' },
    parts.map(({ id, title, content }) =>
      element(
        'section',
        { id, 'aria-labelledby': `${id}-heading` },
        element('h2', { id: `${id}-heading` }, title),
        content,
      ),
    ),
  );
}

/**
 * The report as one HTML page that loads nothing: words and numbers of the terminal's report, plots as
 * SVG, each with a table, and the JSON report itself. It is light or dark as the reader's system is, and
 * fits a phone and paper. All texts are escaped; active characters are written as \u{hex}.
 */
export async function renderHtml(of: HtmlReport): Promise<string> {
  const { report, plots } = of;
  const drawing = await loadDrawing();
  const judged = report.outputs === null || plots === null ? null : { report, plots };
  const parts = partsOf(drawing, of, judged);
  const body = [
    element('a', { class: 'skip', href: '#content' }, 'Skip to the findings'),
    pageHeader(report, judged),
    contents(parts),
    pageMain(parts),
    element('footer', {}, `flashproof ${report.tool.version}`),
    embeddedReport(report),
  ];
  return htmlPage({
    title: `${report.verdict.status}: ${subject(report)}`,
    version: report.tool.version,
    body,
  });
}
