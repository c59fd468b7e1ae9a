import { styleText } from 'node:util';
import type { TechniqueTable } from '../attribution/index.js';
import type { AuditReport, JudgedReport } from './audit-report.js';
import { sketchSection, type AuditSketch } from './audit-sketch.js';
import { plainText } from './plain-text.js';
import { fromReported } from './report-number.js';
import { techniqueNotes, techniqueSections } from './technique-section.js';
import { formatNumber } from '../audit/index.js';
import {
  errorNotesSection,
  errorSection,
  inputsSection,
  oracleSection,
  problemSection,
  testNotes,
  testsSection,
  usualChecksSection,
  type Section,
} from './terminal-sections.js';
import { layoutTable, type Painter, type Tone } from './text-table.js';
import { wrapText } from './wrap-text.js';

/** How a report is to be set. */
export interface RenderOptions {
  /** Whether to use ANSI colours; the environment is not asked. Default: no. */
  readonly color?: boolean;
  /** Terminal columns that no line exceeds; fewer than 60 count as 60. Default: 80. */
  readonly columns?: number;
}

/** How the report of an audit is to be set. */
export interface AuditRenderOptions extends RenderOptions {
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

/** The verdict's sentence, with its first word, PASS or FAIL, painted. */
function verdictLines({ verdict }: AuditReport, columns: number, paint: Painter): string[] {
  const word = verdict.pass ? 'PASS' : 'FAIL';
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

/**
 * The report for a terminal, newline at the end: the verdict, the findings, the evidence, the problem,
 * the error (with sparklines of it, if wanted), the tests, what the usual checks say, the oracle, the inputs. Numbers have three
 * significant digits; characters of file names and commands that could act on the terminal are
 * written as \u{hex}. Only what fails is red.
 */
export function renderAudit(report: AuditReport, options: AuditRenderOptions = {}): string {
  const columns = Math.max(fewestColumns, Math.floor(options.columns ?? 80));
  const paint = painters[options.color === true ? 'color' : 'plain'];
  const table = ({ rows, numberColumns }: Section) =>
    layoutTable(rows, {
      alignments: ['left', ...new Array<'right'>(numberColumns).fill('right')],
      width: columns,
      paint,
    });
  const techniqueLines = (reported: JudgedReport['techniques']): string[][] => {
    if (reported === null) return [];
    const techniques = fromReported<TechniqueTable>(reported);
    return [
      ...techniqueSections(techniques).slice(0, -1).map(table),
      [
        ...table(techniqueSections(techniques).at(-1)!),
        ...indented(plainText(techniqueNotes(techniques)), columns),
      ],
    ];
  };
  const numbers =
    report.error === null
      ? []
      : [
          [...table(errorSection(report)), ...table(errorNotesSection(report))],
          options.sketch ? table(sketchSection(options.sketch)) : [],
          [...table(testsSection(report)), ...indented(testNotes(report), columns)],
          ...techniqueLines(report.techniques),
          table(usualChecksSection(report)),
          table(oracleSection(report)),
        ];
  const { tool, created, seconds } = report;
  const blocks = [
    verdictLines(report, columns, paint),
    findingLines(report, columns, paint),
    list('Evidence', report.verdict.diagnosis?.evidence ?? [], columns, paint),
    table(problemSection(report)),
    ...numbers,
    [
      ...table(inputsSection(report)),
      ...indented(
        `${tool.name} ${plainText(tool.version)}, ${created}, ${formatNumber(seconds)} s`,
        columns,
      ),
    ],
  ];
  return blocks
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.map((line) => `${line.trimEnd()}\n`).join(''))
    .join('\n');
}
