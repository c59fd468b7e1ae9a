import { formatNumber, formatUse } from '../../words/index.js';
import {
  describeFileProblem,
  fileFigures,
  fileReason,
  fileStatus,
  type AuditedFile,
  type AuditsReport,
} from '../json/index.js';
import { element, type Content } from '../layout/index.js';
import { htmlPage, verdictBanner } from './page.js';

/** The page of a file: relative to the index; null for none. */
export type PageOf = (file: AuditedFile, position: number) => string | null;

function bodyRow(file: AuditedFile, link: string | null): Content {
  const { path, report } = file;
  const status = fileStatus(file);
  const figures = fileFigures(file);
  const number = (text: string) => element('td', { class: 'number' }, text);
  return element(
    'tr',
    {},
    element(
      'th',
      { scope: 'row' },
      link === null
        ? path
        : element('a', { href: link.split('/').map(encodeURIComponent).join('/') }, path),
    ),
    element(
      'td',
      { class: status === 'PASS' ? null : 'failure' },
      status === 'PASS' ? status : element('strong', {}, status),
    ),
    number(figures === null ? '' : `${formatUse(figures.share)} ${figures.label}`),
    number(
      figures === null
        ? ''
        : figures.largestError === null
          ? '–'
          : formatNumber(figures.largestError),
    ),
    element('td', { class: 'long' }, fileReason(file)),
    element('td', { class: 'long' }, report === null ? '' : describeFileProblem(report)),
  );
}

const headings: readonly (readonly [text: string, isNumber: boolean])[] = [
  ['file', false],
  ['verdict', false],
  ['bound used', true],
  ['largest error', true],
  ['reason', false],
  ['problem', false],
];

/** The findings of a file that does not pass, with their cause. */
function failureSection({ path, report }: AuditedFile): Content {
  if (report === null || report.verdict.pass) return '';
  const { findings, diagnosis } = report.verdict;
  const clauses = [
    ...findings.map(({ statement }) => statement),
    ...(diagnosis === null || diagnosis.id === 'unexplained'
      ? []
      : [`Cause: ${diagnosis.sentence}`]),
    ...(diagnosis?.evidence ?? []),
  ];
  return element(
    'section',
    {},
    element('h2', {}, path),
    element(
      'ul',
      {},
      clauses.map((clause) => element('li', {}, `${clause}.`)),
    ),
  );
}

/**
 * The report of several files as one HTML page that loads nothing: a table with a row for each file, which
 * leads to the page of the file where it has one, and the findings of those that fail.
 */
export function renderAuditsPage(report: AuditsReport, pageOf: PageOf): string {
  const { verdict, files, tool, created, seconds } = report;
  const caption = 'Files in the order in which they were given';
  const table = element(
    'div',
    { class: 'table', role: 'group', 'aria-label': caption, tabindex: 0 },
    element(
      'table',
      {},
      element('caption', {}, caption),
      element(
        'thead',
        {},
        element(
          'tr',
          {},
          headings.map(([text, isNumber]) =>
            element('th', { scope: 'col', class: isNumber ? 'number' : null }, text),
          ),
        ),
      ),
      element(
        'tbody',
        {},
        files.map((file, position) => bodyRow(file, pageOf(file, position))),
      ),
    ),
  );
  return htmlPage({
    title: `${verdict.status}: audit of ${files.length} files`,
    version: tool.version,
    body: [
      element(
        'header',
        {},
        element('h1', {}, `Audit of ${files.length} files`),
        verdictBanner(verdict.status, verdict.sentence, verdict.pass),
      ),
      element('main', { id: 'content' }, table, files.map(failureSection)),
      element(
        'footer',
        {},
        `flashproof ${tool.version}, ${created}, ${formatNumber(seconds)} s. The largest error is that of the output, in its units.`,
      ),
    ],
  });
}
