import { styleText } from 'node:util';
import type { AuditReport } from './audit-report.js';
import { plainText } from './plain-text.js';
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

/** The findings after the first, which is the verdict's own reason. */
function furtherFindings({ verdict }: AuditReport, columns: number, paint: Painter): string[] {
  const further = verdict.findings.slice(1);
  if (further.length === 0) return [];
  return [
    paint('heading', 'Also'),
    ...further.flatMap(({ statement }) =>
      wrapText(`${plainText(statement)}.`, columns - 4).map(
        (line, index) => `${index === 0 ? '  - ' : '    '}${line}`,
      ),
    ),
  ];
}

/**
 * The report for a terminal, newline at the end: the verdict, the reasons for a fail, the problem,
 * the error, the tests, what the usual checks say, the oracle, the inputs. Numbers have three
 * significant digits; characters of file names and commands that could act on the terminal are
 * written as \u{hex}. Only what fails is red.
 */
export function renderAudit(report: AuditReport, options: RenderOptions = {}): string {
  const columns = Math.max(fewestColumns, Math.floor(options.columns ?? 80));
  const paint = painters[options.color === true ? 'color' : 'plain'];
  const table = ({ rows, numberColumns }: Section) =>
    layoutTable(rows, {
      alignments: ['left', ...new Array<'right'>(numberColumns).fill('right')],
      width: columns,
      paint,
    });
  const numbers =
    report.error === null
      ? []
      : [
          [...table(errorSection(report)), ...table(errorNotesSection(report))],
          [...table(testsSection(report)), ...indented(testNotes(report), columns)],
          table(usualChecksSection(report)),
          table(oracleSection(report)),
        ];
  const { tool, created, seconds } = report;
  const blocks = [
    verdictLines(report, columns, paint),
    furtherFindings(report, columns, paint),
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
