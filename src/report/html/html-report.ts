import {
  type AuditReport,
  describeReportedProblem,
  describeSample,
  describeWarning,
} from '../json/index.js';
import {
  gradientNotes,
  gradientsOfTechniques,
  gradientsSection,
  gradientTechniquesNote,
  gradientTechniquesSection,
  gradientTestsSection,
  modelMatchesSection,
  modelMatchNotes,
  notJudged,
  sequencesSection,
  splitsSection,
} from '../text/index.js';
import { comparisonContent, type ComparedOutput } from './comparison.js';
import { loadDrawing } from './drawing.js';
import { exp2Figure, type Exp2Curve } from './exp2-curve.js';
import { figures, sectionTable } from './figure.js';
import { element, join, raw, type Html } from '../layout/index.js';
import type { PlotData } from './plot-data.js';
import { provenanceContent, type ReproduceCommand, reproduceContent } from './provenance.js';
import {
  figuresOfMerit,
  findingsContent,
  heatContent,
  rowsContent,
  techniquesContent,
  ulpsContent,
  usualContent,
} from './report-sections.js';
import { htmlPage, verdictBanner } from './page.js';

/** The contents of an HTML report: the report of JSON, and the parts that only HTML has. */
export interface HtmlReport {
  readonly report: AuditReport;
  /** Null when there was no output to judge. */
  readonly plots: PlotData | null;
  /** The declared kernel's implementations of 2^x; empty where none is declared. */
  readonly exp2: readonly Exp2Curve[];
  /** Other outputs of the problem, with one heat map of all heads each; the judged output comes first. */
  readonly compared: readonly ComparedOutput[];
  /** The kernel that the output resembles, in words; null when that was not requested. */
  readonly identification: string | null;
  readonly commands: readonly ReproduceCommand[];
}

/** A part of the page, with its place in the contents. */
interface Part {
  readonly id: string;
  readonly title: string;
  readonly content: Html;
}

/** The report for machines. No text in it can end the script early. */
function embeddedReport(report: AuditReport): Html {
  const json = JSON.stringify(report).replaceAll('<', '\\u003c');
  return raw(`<script type="application/json" id="report">${json}</script>`);
}

function subject({ inputs: { problem, outputs, command } }: AuditReport): string {
  const judged = command ?? (outputs.length === 0 ? 'an output' : outputs[0].tensor);
  return `Audit of ${judged} on ${problem.path}`;
}

/**
 * The report as one HTML page that loads nothing: words and numbers of the terminal's report, plots as
 * SVG, each with a table, and the JSON report itself. It is light or dark as the reader's system is, and
 * fits a phone and paper. All texts are escaped; active characters are written as \u{hex}.
 */
export async function renderHtml(of: HtmlReport): Promise<string> {
  const { report, plots, exp2, compared, identification, commands } = of;
  const drawing = await loadDrawing();
  const judged = report.outputs === null || plots === null ? null : { report, plots };
  const parts: (Part | null)[] = [
    { id: 'findings', title: 'Findings', content: findingsContent(report, identification) },
    judged && {
      id: 'techniques',
      title: 'Techniques',
      content: techniquesContent(drawing, judged.report),
    },
    // A sample of rows would make a map with holes.
    judged === null || report.sample !== null
      ? null
      : {
          id: 'elements',
          title: 'Where the errors are',
          content: heatContent(drawing, judged.report, judged.plots),
        },
    judged && { id: 'rows', title: 'Which rows err', content: rowsContent(drawing, judged.plots) },
    judged && {
      id: 'ulps',
      title: 'How large the errors are',
      content: ulpsContent(drawing, judged.report, judged.plots),
    },
    exp2.length === 0
      ? null
      : {
          id: 'exp2',
          title: 'The exponential',
          content: join(
            element('p', {}, "The declared kernel's implementations of 2^x over one octave."),
            figures(...exp2.map((curve) => exp2Figure(drawing, curve))),
          ),
        },
    judged === null || (judged.report.sequences ?? []).length === 0
      ? null
      : {
          id: 'sequences',
          title: 'Sequence by sequence',
          content: sectionTable(
            'Sequences, those first that use most of their bounds',
            sequencesSection(judged.report),
          ),
        },
    report.gradients === undefined
      ? null
      : {
          id: 'gradients',
          title: 'Gradients',
          content: join(
            element('p', {}, report.gradients.sentence),
            sectionTable('Gradients', gradientsSection(report.gradients)),
            sectionTable('Tests of the gradients', gradientTestsSection(report)),
            element('p', { class: 'note' }, gradientNotes(report.gradients)),
            gradientsOfTechniques(report.gradients).flatMap((gradient) => {
              const note = gradientTechniquesNote(gradient);
              return [
                sectionTable(
                  `What each technique may do to ${gradient.label}`,
                  gradientTechniquesSection(gradient),
                ),
                ...(note === null ? [] : [element('p', { class: 'note' }, note)]),
              ];
            }),
            ...(report.gradients.models.length === 0
              ? []
              : [
                  sectionTable(
                    'Kernel models, bit for bit',
                    modelMatchesSection(report.gradients, true),
                  ),
                  modelMatchNotes(report.gradients).map((note) =>
                    element('p', { class: 'note' }, note),
                  ),
                ]),
            report.gradients.notJudged.map((clause) =>
              element('p', { class: 'muted' }, `Not judged of gradients: ${clause}.`),
            ),
          ),
        },
    report.splits === null
      ? null
      : {
          id: 'splits',
          title: 'Parts of the split problem',
          content: sectionTable('Parts and their merge', splitsSection(report.splits)),
        },
    compared.length === 0
      ? null
      : {
          id: 'comparison',
          title: 'Outputs compared',
          content: comparisonContent(drawing, compared, report.comparison),
        },
    judged && { id: 'usual', title: 'Usual checks', content: usualContent(judged.report) },
    { id: 'reproduce', title: 'To reproduce', content: reproduceContent(commands) },
    {
      id: 'provenance',
      title: 'Provenance',
      content: provenanceContent(report, compared.slice(1)),
    },
  ];
  const shown = parts.filter((part) => part !== null);
  const body = [
    element('a', { class: 'skip', href: '#content' }, 'Skip to the findings'),
    element(
      'header',
      {},
      element('h1', {}, subject(report)),
      verdictBanner(report.verdict.status, report.verdict.sentence, report.verdict.pass),
      element('p', { class: 'muted' }, describeReportedProblem(report.problem)),
      report.sample === null
        ? ''
        : element('p', { class: 'muted' }, `Judged: ${describeSample(report.sample)}.`),
      report.verdict.notes.map((note) => element('p', { class: 'warning' }, `Note: ${note}.`)),
      report.warnings.map((warning) =>
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
    ),
    element(
      'nav',
      { 'aria-label': 'Contents' },
      element(
        'ul',
        {},
        shown.map(({ id, title }) => element('li', {}, element('a', { href: `#${id}` }, title))),
      ),
    ),
    element(
      'main',
      { id: 'content' },
      shown.map(({ id, title, content }) =>
        element(
          'section',
          { id, 'aria-labelledby': `${id}-heading` },
          element('h2', { id: `${id}-heading` }, title),
          content,
        ),
      ),
    ),
    element('footer', {}, `flashproof ${report.tool.version}`),
    embeddedReport(report),
  ];
  return htmlPage({
    title: `${report.verdict.status}: ${subject(report)}`,
    version: report.tool.version,
    body,
  });
}
