import type { ChainReport, LinkReport } from '../json/index.js';
import { element, join } from '../layout/index.js';
import { failureSection, linkNotes, linkSection } from '../text/index.js';
import { sectionTable } from './figure.js';
import { contents, embeddedReport, pageMain, subject } from './html-report.js';
import type { Part } from './page-parts.js';
import { htmlPage } from './page.js';
import { reproduceContent, type ReproduceCommand } from './provenance.js';
import { plainHeader } from './recurrent-page.js';

/** What fails, with its cause and evidence; nothing of a pass. */
export function failurePart(report: LinkReport | ChainReport): Part[] {
  const { findings, diagnosis } = report.verdict;
  if (findings.length === 0) return [];
  const failure = failureSection(report);
  const clauses = [...findings.map(({ statement }) => statement), ...(diagnosis?.evidence ?? [])];
  const content = join(
    failure === null ? '' : sectionTable('Cause and place', failure),
    element(
      'ul',
      {},
      clauses.map((clause) => element('li', {}, `${clause}.`)),
    ),
  );
  return [{ id: 'failure', title: 'Failure', content }];
}

/** The report on a link of the decode chain as one HTML page that loads nothing: the table of the terminal, and the JSON report. */
export function renderLinkPage(report: LinkReport, commands: readonly ReproduceCommand[]): string {
  const parts: Part[] = [
    ...failurePart(report),
    {
      id: 'judged',
      title: 'Checks',
      content: join(
        sectionTable('What was judged', linkSection(report)),
        element('p', { class: 'muted' }, linkNotes(report)),
      ),
    },
    { id: 'reproduce', title: 'Reproduce', content: reproduceContent(commands) },
  ];
  return htmlPage({
    title: subject(report),
    version: report.tool.version,
    body: [plainHeader(report), contents(parts), pageMain(parts), embeddedReport(report)],
  });
}
