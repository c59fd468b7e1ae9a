import { formatNumber, formatPowerOfTwo } from '../../words/index.js';
import {
  type AuditReport,
  fromReported,
  quantityLabel,
  type JudgedReport,
  type ReportedSource,
} from '../json/index.js';
import { dataTable } from './figure.js';
import { breakLine, element, type Html, join, quoteShellCommand } from '../layout/index.js';

/** The bytes that were judged, and the program that judged them. */
export function provenanceContent(
  report: AuditReport,
  compared: readonly { readonly name: string; readonly report: JudgedReport }[],
): Html {
  const { problem, outputs, command } = report.inputs;
  const source = (name: string, of: ReportedSource): string[] => [
    name,
    `${of.format} ${of.tensor} of ${of.path ?? 'what the command made'}`,
    of.sha256,
  ];
  const settled =
    report.oracle === null
      ? []
      : Object.entries(report.oracle.rows)
          .filter(([, count]) => Number(count) > 0)
          .map(([level, count]) => `${String(count)} ${level}`);
  const { oracle } = report;
  return join(
    dataTable({
      caption: 'Inputs, with the SHA-256 of their bytes',
      rows: [
        ['', 'what', 'SHA-256'],
        ['problem', problem.path, problem.sha256],
        ...outputs.map((of) => source(quantityLabel(of.name), of)),
        ...compared.map(({ name, report: { inputs } }) => source(name, inputs.outputs[0])),
        ...(command === null ? [] : [['command', command, '']]),
      ],
      numberColumns: 0,
    }),
    oracle === null
      ? ''
      : element(
          'p',
          {},
          `The oracle settled ${settled.length === 0 ? 'no' : settled.join(', ')} rows; its radius is at most ${formatPowerOfTwo(fromReported<number>(oracle.largestRadius))} of Σ p|v|. The bounds are those of ${report.arithmetic}. Statistical tests fail a correct kernel with probability ${report.falseAlarmRate} at most.`,
        ),
    element(
      'p',
      {},
      `${report.tool.name} ${report.tool.version}, ${report.created}, ${formatNumber(report.seconds)} s. The JSON report is in this page, in the element with the id "report".`,
    ),
  );
}

/** A command line that reproduces this report, or part of it. */
export interface ReproduceCommand {
  readonly purpose: string;
  readonly words: readonly string[];
}

/** Number of columns of a command line before it is continued on the next line. */
const commandWidth = 78;

/** A command over several lines that a POSIX shell reads as one; a flag stays with its value. */
export function commandLines(words: readonly string[]): string[] {
  const groups: string[][] = [];
  for (const word of words) {
    const previous = groups.at(-1);
    const isValue = previous?.length === 1 && previous[0].startsWith('--') && !word.startsWith('-');
    if (isValue) previous.push(word);
    else groups.push([word]);
  }
  const lines: string[] = [];
  for (const group of groups.map(quoteShellCommand)) {
    const joined = lines.length === 0 ? group : `${lines.at(-1)!} ${group}`;
    if (lines.length > 0 && joined.length <= commandWidth) lines[lines.length - 1] = joined;
    else lines.push(group);
  }
  return lines.map((line, index) => (index < lines.length - 1 ? `${line} \\` : line));
}

/** Commands, ready to paste. */
export function reproduceContent(commands: readonly ReproduceCommand[]): Html {
  return join(
    ...commands.map(({ purpose, words }) =>
      join(
        element('h3', {}, purpose),
        element(
          'pre',
          { tabindex: 0 },
          element(
            'code',
            {},
            commandLines(['npx', ...words]).flatMap((line, index) => [
              ...(index === 0 ? [] : [breakLine, '  ']),
              line,
            ]),
          ),
        ),
      ),
    ),
  );
}
