import type { ChainLink, ChainReport, LinkReport } from '../json/index.js';
import { element, join } from '../layout/index.js';
import {
  chainSection,
  costNotes,
  costSection,
  failureSection,
  jointSection,
  linkNotes,
  linkSection,
} from '../text/index.js';
import { sectionTable } from './figure.js';
import { contents, embeddedReport, pageMain, subject } from './html-report.js';
import type { Part } from './page-parts.js';
import { htmlPage } from './page.js';
import { reproduceContent, type ReproduceCommand } from './provenance.js';
import { plainHeader } from './recurrent-page.js';

/** What fails, with its cause and evidence; nothing of a pass. */
function failurePart(report: LinkReport | ChainReport): Part[] {
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

/** The details of a link: its verdict, and of one with a contract of its own what was judged. */
function linkPart({ name, report, sentence }: ChainLink, index: number): Part {
  return {
    id: `link-${index}`,
    title: name,
    content: join(
      element('p', {}, report === null ? sentence : report.verdict.sentence),
      report?.kind === 'link-audit' ? sectionTable('What was judged', linkSection(report)) : '',
    ),
  };
}

/** The report on a chain as one HTML page that loads nothing: the tables of the terminal, and the JSON report. */
export function renderChainPage(
  report: ChainReport,
  commands: readonly ReproduceCommand[],
): string {
  const [handed, cost] = [jointSection(report), costSection(report)];
  const parts: Part[] = [
    ...failurePart(report),
    {
      id: 'links',
      title: 'Links',
      content: join(
        sectionTable('Each link by what it read', chainSection(report)),
        handed === null ? '' : sectionTable('What one link handed to another', handed),
      ),
    },
    {
      id: 'cost',
      title: 'Cost of approximations',
      content: join(
        cost === null ? '' : sectionTable('Apart from exact attention', cost),
        element('p', { class: 'muted' }, costNotes(report)),
      ),
    },
    ...report.links.map(linkPart),
    { id: 'reproduce', title: 'Reproduce', content: reproduceContent(commands) },
  ];
  return htmlPage({
    title: subject(report),
    version: report.tool.version,
    body: [plainHeader(report), contents(parts), pageMain(parts), embeddedReport(report)],
  });
}
