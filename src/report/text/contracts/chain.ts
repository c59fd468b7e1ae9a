import type { LinkCheck } from '../../../audit/index.js';
import { formatNumber, formatPercentage, plainText, reasonOf } from '../../../words/index.js';
import {
  fromReported,
  type ChainFigure,
  type ChainLink,
  type ChainReport,
} from '../../json/index.js';
import { heading, type Cell, type Section } from '../../layout/index.js';
import { clauseList, renderAudit, verdictLines, type AuditRenderOptions } from '../audit.js';
import { notesSection, warningsSection } from '../audit-summary.js';
import { joinBlocks, settingOf } from '../setting.js';
import { renderLink } from './link.js';

/** The links of a chain in their order, a row each, with their verdicts. */
export function chainSection({ links }: ChainReport): Section {
  return {
    rows: [
      [heading('Links'), 'contract', 'verdict', ''],
      ...links.map(({ name, contract, status, sentence, report }): Cell[] => [
        `  ${plainText(name)}`,
        contract,
        { text: status, tone: status === 'PASS' ? 'success' : 'failure' },
        plainText(
          report === null ? sentence : reasonOf({ status: report.verdict.status, sentence }),
        ),
      ]),
    ],
    numberColumns: 0,
  };
}

/** What one link handed to another, a row each; null where nothing of it is in the dump twice. */
export function jointSection({ checks }: ChainReport): Section | null {
  if (checks.length === 0) return null;
  return {
    rows: [
      [heading('Handed on'), 'parts', 'other', ''],
      ...checks.map((reported): Cell[] => {
        const { label, checked, wrong, parts, unjudged } = fromReported<LinkCheck>(reported);
        return [
          `  ${plainText(label)}`,
          String(checked),
          wrong > 0 ? { text: String(wrong), tone: 'failure' } : '0',
          plainText(unjudged === null ? parts : `not compared: ${unjudged}`),
        ];
      }),
    ],
    numberColumns: 2,
  };
}

/** The cost of what a chain approximates, a row for each reference; null where it is not known. */
export function costSection({ cost }: ChainReport): Section | null {
  if (cost === null) return null;
  return {
    rows: [
      [heading('Apart from exact'), 'RMS', 'largest'],
      ...cost.figures.map((reported): Cell[] => {
        const { what, relative, largest } = fromReported<ChainFigure>(reported);
        return [`  ${plainText(what)}`, formatPercentage(relative), formatNumber(largest)];
      }),
    ],
    numberColumns: 2,
  };
}

/** What the figures mean, or why there are none. */
export function costNotes({ cost, costUnknown }: ChainReport): string {
  return cost === null
    ? `What the approximations cost is not known: ${plainText(costUnknown ?? '')}.`
    : `Of ${plainText(cost.end)}. The first is for the kernel to answer; the others are what the approximations cost with it, and no verdict depends on them.`;
}

/** The report of a link as of a file of its own. */
function renderOne(report: NonNullable<ChainLink['report']>, options: AuditRenderOptions): string {
  return report.kind === 'link-audit' ? renderLink(report, options) : renderAudit(report, options);
}

/**
 * The report on a chain for a terminal, newline at the end: the verdict, the links, what one handed to another, and the cost of the
 * approximations. `full` prints the report of each link behind it.
 */
export function renderChain(report: ChainReport, options: AuditRenderOptions = {}): string {
  const setting = settingOf(options);
  const { section, indented } = setting;
  const whole = joinBlocks([
    verdictLines(report, setting),
    clauseList('Evidence', report.verdict.diagnosis?.evidence ?? [], setting),
    section(chainSection(report)),
    section(jointSection(report)),
    [...section(costSection(report)), ...indented(costNotes(report))],
    [...section(notesSection(report)), ...section(warningsSection(report))],
  ]);
  if (options.full !== true) return whole;
  const details = report.links.flatMap((link) =>
    link.report === null ? [] : [`\n${plainText(link.name)}\n\n${renderOne(link.report, options)}`],
  );
  return whole + details.join('');
}
