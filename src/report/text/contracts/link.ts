import type { LinkCheck } from '../../../audit/index.js';
import { formatUse, plainText } from '../../../words/index.js';
import { fromReported, type LinkReport } from '../../json/index.js';
import { heading, type Cell, type Section } from '../../layout/index.js';
import { clauseList, findingLines, verdictLines, type AuditRenderOptions } from '../audit.js';
import { notesSection, warningsSection } from '../audit-summary.js';
import { failureSection } from '../failure.js';
import { joinBlocks, settingOf } from '../setting.js';

/** What was judged of a link, a row each: parts, wrong ones, those that could go either way, and the use of bounds. */
export function linkSection({ checks }: LinkReport): Section {
  return {
    rows: [
      [heading('Judged'), 'parts', 'wrong', 'either way', 'worst', ''],
      ...checks.map((reported): Cell[] => {
        const { label, checked, wrong, free, worstShare, parts, unjudged } =
          fromReported<LinkCheck>(reported);
        return [
          `  ${label}`,
          String(checked),
          wrong > 0 ? { text: String(wrong), tone: 'failure' } : '0',
          String(free),
          worstShare === null ? '' : formatUse(worstShare),
          plainText(unjudged === null ? parts : `not judged: ${unjudged}`),
        ];
      }),
    ],
    numberColumns: 4,
  };
}

/** The basis on which a link was judged. */
export function linkNotes({ arithmetic, falseAlarmRate }: LinkReport): string {
  const rate =
    falseAlarmRate === null
      ? ''
      : `; false alarms of statistical checks: ${falseAlarmRate} at most`;
  return `A correct link has ${plainText(arithmetic)}${rate}.`;
}

/**
 * The report on a link of the decode chain for a terminal, newline at the end: the verdict, what fails, the problem, and a table of
 * what was judged. `full` prints the evidence for the cause, and the tensors that were read.
 */
export function renderLink(report: LinkReport, options: AuditRenderOptions = {}): string {
  const setting = settingOf(options);
  const { section, indented } = setting;
  const isFull = options.full === true;
  const problem = `${report.contract}: ${report.problem.description}`;
  return joinBlocks([
    verdictLines(report, setting),
    section(failureSection(report)),
    findingLines(report, setting),
    isFull ? clauseList('Evidence', report.verdict.diagnosis?.evidence ?? [], setting) : [],
    [
      ...section({ rows: [[heading('Problem'), plainText(problem)]], numberColumns: 0 }),
      ...section(notesSection(report)),
      ...section(warningsSection(report)),
    ],
    [...section(linkSection(report)), ...indented(linkNotes(report))],
    isFull
      ? section({
          rows: [
            [heading('Tensors'), ''],
            ...report.inputs.outputs.map(({ name, path, tensor }) => [
              `  ${name}`,
              plainText(path === report.inputs.problem.path ? tensor : `${path}: ${tensor}`),
            ]),
          ],
          numberColumns: 0,
        })
      : [],
  ]);
}
