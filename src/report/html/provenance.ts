import { formatNumber } from '../../words/index.js';
import type { AuditReport, JudgedReport, ReportedSource } from '../json/index.js';
import { fromReported } from '../json/index.js';
import { formatPowerOfTwo } from '../../words/index.js';
import { dataTable } from './data-table.js';
import { element, join, type Html } from '../layout/index.js';

/** Which bytes were judged, by what. */
export function provenanceContent(
  report: AuditReport,
  compared: readonly { readonly name: string; readonly report: JudgedReport }[],
): Html {
  const { problem, output, lse, command } = report.inputs;
  const source = (name: string, of: ReportedSource | null): string[][] =>
    of === null
      ? []
      : [[name, `${of.format} ${of.tensor} of ${of.path ?? 'what the command made'}`, of.sha256]];
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
        ...source('output', output),
        ...source('LSE', lse),
        ...compared.flatMap(({ name, report: { inputs } }) => source(name, inputs.output)),
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
