import { styleText } from 'node:util';
import type { TechniqueTable } from '../../attribution/index.js';
import { type AuditReport, type JudgedReport, verdictWord } from '../json/index.js';
import { fromReported } from '../json/index.js';
import { sketchSection, type AuditSketch } from './audit-sketch.js';
import { formatNumber } from '../../words/index.js';
import { plainText } from '../../words/index.js';
import { techniqueNotes, techniqueSections } from './techniques.js';
import {
  errorNotesSection,
  errorSection,
  failedTestsSection,
  inputsSection,
  oracleSection,
  problemSection,
  testNotes,
  testsSection,
  usualChecksSection,
  type Section,
} from './audit-sections.js';
import { summaryNotes, summarySection, notesSection, warningsSection } from './audit-summary.js';
import { layoutTable, type Painter, type Tone } from '../layout/index.js';
import { wrapText } from '../layout/index.js';

/** How a report is to be set. */
export interface RenderOptions {
  /** Whether to use ANSI colours; the environment is not asked. Default: no. */
  readonly color?: boolean;
  /** Terminal columns that no line exceeds; fewer than 60 count as 60. Default: 80. */
  readonly columns?: number;
}

/** How the report of an audit is to be set. */
export interface AuditRenderOptions extends RenderOptions {
  /** Whether every number is wanted, and not only those that a person asks for first. Default: no. */
  readonly full?: boolean;
  /** What the sparklines are drawn from; null, or left out, for none. */
  readonly sketch?: AuditSketch | null;
}

/** The fewest columns that the tables fit. */
const fewestColumns = 60;

type TextStyle = Parameters<typeof styleText>[0];

const styles: Readonly<Record<Tone, TextStyle>> = {
  heading: 'bold',
  failure: 'red',
  success: 'green',
};

const painters: Readonly<Record<'color' | 'plain', Painter>> = {
  // Whether to colour is the caller's decision, so the stream and NO_COLOR are not looked at again.
  color: (tone, text) => styleText(styles[tone], text, { validateStream: false }),
  plain: (_, text) => text,
};

function indented(text: string, columns: number): string[] {
  return wrapText(text, columns - 2).map((line) => `  ${line}`);
}

/** The verdict's sentence, with its first word, as of `verdictWord`, painted. */
function verdictLines(report: AuditReport, columns: number, paint: Painter): string[] {
  const { verdict } = report;
  const word = verdictWord(report);
  const sentence = plainText(verdict.sentence);
  const [first, ...rest] = wrapText(
    sentence.startsWith(word) ? sentence : `${word}: ${sentence}`,
    columns,
  );
  return [paint(verdict.pass ? 'success' : 'failure', word) + first!.slice(word.length), ...rest];
}

/** Clauses below a heading, one to an item; nothing when there are none. */
function list(heading: string, clauses: readonly string[], columns: number, paint: Painter) {
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

/** The findings, but for one that the verdict already names where the cause is not known. */
function findingLines({ verdict }: AuditReport, columns: number, paint: Painter): string[] {
  const named = verdict.diagnosis !== null && verdict.diagnosis.id !== 'unexplained';
  const statements = verdict.findings.map(({ statement }) => statement);
  return named
    ? list('Findings', statements, columns, paint)
    : list('Also', statements.slice(1), columns, paint);
}

/** How a report is set: its tables, its width, its colours. */
interface Setting {
  readonly table: (section: Section | null) => string[];
  readonly columns: number;
  readonly paint: Painter;
}

function settingOf(options: RenderOptions): Setting {
  const columns = Math.max(fewestColumns, Math.floor(options.columns ?? 80));
  const paint = painters[options.color === true ? 'color' : 'plain'];
  return {
    table: (section) =>
      section === null
        ? []
        : layoutTable(section.rows, {
            alignments: ['left', ...new Array<'right'>(section.numberColumns).fill('right')],
            width: columns,
            paint,
          }),
    columns,
    paint,
  };
}

/** The tables of techniques, the last with what they are of; none where there are none. */
function techniqueBlocks(reported: JudgedReport['techniques'], setting: Setting): string[][] {
  if (reported === null) return [];
  const { table, columns } = setting;
  const techniques = fromReported<TechniqueTable>(reported);
  const sections = techniqueSections(techniques).map(table);
  return [
    ...sections.slice(0, -1),
    [...sections.at(-1)!, ...indented(plainText(techniqueNotes(techniques)), columns)],
  ];
}

/** Every number of a judged output. */
function fullBlocks(report: JudgedReport, sketch: AuditSketch | null, setting: Setting) {
  const { table, columns } = setting;
  return [
    [...table(errorSection(report)), ...table(errorNotesSection(report))],
    sketch === null ? [] : table(sketchSection(sketch)),
    [...table(testsSection(report)), ...indented(testNotes(report), columns)],
    ...techniqueBlocks(report.techniques, setting),
    table(usualChecksSection(report)),
    table(oracleSection(report)),
  ];
}

/** Of a pass the numbers asked for first, of a fail the tests that fail; and where the rest is. */
function shortBlocks(report: JudgedReport, { table, columns }: Setting): string[][] {
  const numbers = report.verdict.pass ? summarySection(report) : failedTestsSection(report);
  return [[...table(numbers), ...indented(summaryNotes(report), columns)]];
}

function inputBlock(report: AuditReport, { table, columns }: Setting): string[] {
  const { tool, created, seconds } = report;
  const made = `${tool.name} ${plainText(tool.version)}, ${created}, ${formatNumber(seconds)} s`;
  return [...table(inputsSection(report)), ...indented(made, columns)];
}

/**
 * The report for a terminal, newline at the end: the verdict, the findings, the evidence, the problem,
 * inputs that were not used; then of a pass the numbers that are asked for first, which fits one screen,
 * of a fail the tests that fail. `full` prints all there is instead: the error (with sparklines of it, if
 * wanted), the tests, the techniques, what the usual checks say, the oracle, the inputs. Numbers have
 * three significant digits; characters of file names and commands that could act on the terminal are
 * written as \u{hex}. Only what fails is red.
 */
export function renderAudit(report: AuditReport, options: AuditRenderOptions = {}): string {
  const setting = settingOf(options);
  const { table, columns, paint } = setting;
  const isShort = options.full !== true && report.error !== null;
  const numbers =
    report.error === null
      ? []
      : isShort
        ? shortBlocks(report, setting)
        : fullBlocks(report, options.sketch ?? null, setting);
  const blocks = [
    verdictLines(report, columns, paint),
    findingLines(report, columns, paint),
    list('Evidence', report.verdict.diagnosis?.evidence ?? [], columns, paint),
    [
      ...table(problemSection(report)),
      ...table(notesSection(report)),
      ...table(warningsSection(report)),
    ],
    ...numbers,
    isShort ? [] : inputBlock(report, setting),
  ];
  return blocks
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.map((line) => `${line.trimEnd()}\n`).join(''))
    .join('\n');
}
