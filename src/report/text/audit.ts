import type { TechniqueTable } from '../../attribution/index.js';
import { formatNumber, formatUse, plainText } from '../../words/index.js';
import {
  describePartKeys,
  fromReported,
  type AuditReport,
  type FileReport,
  type JudgedReport,
  type ReportedSplits,
} from '../json/index.js';
import { heading, wrapText, type Section } from '../layout/index.js';
import {
  errorSections,
  inputsSection,
  oracleSection,
  problemSection,
  sequencesSection,
  usualChecksSection,
} from './audit-sections.js';
import { sketchSection, type AuditSketch } from './audit-sketch.js';
import {
  notesSection,
  sampleSection,
  summaryNotes,
  summarySection,
  warningsSection,
} from './audit-summary.js';
import { failedTestsSection, testNotes, testsSection } from './audit-tests.js';
import { comparisonBlocks } from './comparison.js';
import { failureSection } from './failure.js';
import { gradientsBlocks } from './gradients.js';
import {
  joinBlocks,
  paintVerdict,
  settingOf,
  type RenderOptions,
  type Setting,
} from './setting.js';
import { techniqueNotes, techniqueSections } from './techniques.js';

/** The parts of a split problem, a row each, and their merge. */
export function splitsSection({ rule, parts, merge }: ReportedSplits): Section {
  const rows = parts.map((part) => [
    `  part ${part.split}`,
    formatUse(Number(part.boundUsed)),
    formatNumber(Number(part.largestError)),
    { text: part.status, tone: part.pass ? ('success' as const) : ('failure' as const) },
    plainText(describePartKeys(part)),
  ]);
  const merged =
    merge === null
      ? [['  merge', '', '', '', 'not judged: the parts have no LSE']]
      : [
          [
            '  merge',
            formatUse(Number(merge.used)),
            '',
            merge.pass
              ? ({ text: 'PASS', tone: 'success' } as const)
              : ({ text: 'FAIL', tone: 'failure' } as const),
            merge.lseUsed === null
              ? 'of what fp32 may err by'
              : `of what fp32 may err by; of the LSE ${formatUse(Number(merge.lseUsed))}`,
          ],
        ];
  return {
    rows: [
      [heading('Parts'), heading('bound used'), heading('largest'), heading(''), plainText(rule)],
      ...rows,
      ...merged,
    ],
    numberColumns: 2,
  };
}

/** The parts as lines; none where there are none. */
function splitsBlock(
  splits: ReportedSplits | null,
  { section }: Pick<Setting, 'section'>,
): string[] {
  return splits === null ? [] : section(splitsSection(splits));
}

/** Options for rendering the report of an audit. */
export interface AuditRenderOptions extends RenderOptions {
  /** Whether to print every number, and not only those that readers ask for first. Default: no. */
  readonly full?: boolean;
  /** The data of the sparklines; null, or left out, for none. */
  readonly sketch?: AuditSketch | null;
}

/** A report with a verdict of findings. */
type OfVerdict = Pick<FileReport, 'verdict'>;

/** The verdict's sentence, with its status painted. */
export function verdictLines({ verdict }: OfVerdict, setting: Setting): string[] {
  const lines = wrapText(plainText(verdict.sentence), setting.columns);
  return paintVerdict(lines, verdict.status, verdict.pass, setting);
}

/** Clauses below a heading, one to an item; nothing when there are none. */
export function clauseList(
  heading: string,
  clauses: readonly string[],
  { columns, paint }: Setting,
): string[] {
  if (clauses.length === 0) return [];
  return [
    paint('heading', heading),
    ...clauses.flatMap((clause) =>
      wrapText(`${plainText(clause)}.`, columns - 4).map(
        (line, index) => `${index === 0 ? '  - ' : '    '}${line}`,
      ),
    ),
  ];
}

/** The findings, except one that the verdict's sentence gives where the cause is unknown. */
export function findingLines({ verdict }: OfVerdict, setting: Setting): string[] {
  const named = verdict.diagnosis !== null && verdict.diagnosis.id !== 'unexplained';
  const statements = verdict.findings.map(({ statement }) => statement);
  return named
    ? clauseList('Findings', statements, setting)
    : clauseList(
        'Also',
        statements.filter((statement) => !verdict.sentence.includes(statement)),
        setting,
      );
}

/** Maximum number of findings that are listed where not all are requested. */
const mostFindings = 3;

/**
 * Findings beyond the verdict's that come from no test of numbers: from a machine, a process, or the parts of splits.
 */
export function otherFindingLines({ verdict }: OfVerdict, setting: Setting): string[] {
  const others = verdict.findings.filter(({ quantity }, at) => at > 0 && quantity === null);
  const left = others.length - mostFindings;
  const more = left > 0 ? [`${left} more, which --full prints`] : [];
  return clauseList(
    'Also',
    [...others.slice(0, mostFindings).map((one) => one.statement), ...more],
    setting,
  );
}

/** The tables of techniques, the last followed by the notes on them; none where there are none. */
function techniqueBlocks(
  reported: JudgedReport['techniques'],
  { section, indented }: Setting,
): string[][] {
  if (reported === null) return [];
  const techniques = fromReported<TechniqueTable>(reported);
  const sections = techniqueSections(techniques).map(section);
  return [
    ...sections.slice(0, -1),
    [...sections.at(-1)!, ...indented(plainText(techniqueNotes(techniques)))],
  ];
}

/** Every number of a judged output. */
function fullBlocks(
  report: JudgedReport,
  sketch: AuditSketch | null,
  setting: Setting,
): readonly string[][] {
  const { section, indented } = setting;
  return [
    errorSections(report).flatMap(section),
    sketch === null ? [] : section(sketchSection(sketch)),
    [...section(testsSection(report)), ...indented(testNotes(report))],
    section(sequencesSection(report)),
    ...techniqueBlocks(report.techniques, setting),
    section(usualChecksSection(report)),
    section(oracleSection(report)),
  ];
}

/** The summary of a pass, and the notes on the basis of the judgement and the way to see the rest. */
function shortBlocks(report: JudgedReport, { section, indented }: Setting): string[][] {
  const numbers = report.verdict.pass ? summarySection(report) : null;
  return [[...section(numbers), ...indented(summaryNotes(report))]];
}

export function inputBlock(
  report: Pick<AuditReport, 'inputs' | 'tool' | 'created' | 'seconds'>,
  { section, indented }: Setting,
): string[] {
  const { tool, created, seconds } = report;
  const made = `${tool.name} ${plainText(tool.version)}, ${created}, ${formatNumber(seconds)} s`;
  return [...section(inputsSection(report)), ...indented(made)];
}

/**
 * The report for a terminal, newline at the end: the verdict with its cause and place, the worst row, the three tests that
 * fail by most, the problem, inputs that were not used; for a pass the numbers that readers ask for first, which fit one
 * screen. `full` prints everything: every finding, the evidence, the error (with sparklines of it, if requested), the
 * tests, the techniques, the results of the usual checks, the oracle, the inputs. Numbers have three significant digits;
 * characters of file names and commands that could act on the terminal are written as \u{hex}. Only failures are red.
 */
export function renderAudit(report: AuditReport, options: AuditRenderOptions = {}): string {
  const setting = settingOf(options);
  const { section } = setting;
  const isShort =
    options.full !== true && (report.outputs !== null || report.gradients !== undefined);
  const numbers =
    report.outputs === null
      ? []
      : isShort
        ? shortBlocks(report, setting)
        : fullBlocks(report, options.sketch ?? null, setting);
  return joinBlocks([
    verdictLines(report, setting),
    section(failureSection(report)),
    ...(isShort
      ? [section(failedTestsSection(report)), otherFindingLines(report, setting)]
      : [
          findingLines(report, setting),
          clauseList('Evidence', report.verdict.diagnosis?.evidence ?? [], setting),
        ]),
    [
      ...section(problemSection(report)),
      ...section(sampleSection(report)),
      ...section(notesSection(report)),
      ...section(warningsSection(report)),
    ],
    ...numbers,
    ...gradientsBlocks(report, setting, !isShort),
    splitsBlock(report.splits, setting),
    ...comparisonBlocks(report.comparison, setting),
    isShort ? [] : inputBlock(report, setting),
  ]);
}
