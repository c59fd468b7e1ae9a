import { formatNumber, formatUse, plainText } from '../../words/index.js';
import {
  fileFigures,
  fileReason,
  fileStatus,
  type AuditedFile,
  type AuditsReport,
  type FileFigures,
} from '../json/index.js';
import { heading, wrapText, type Cell, type TableRow } from '../layout/index.js';
import { joinBlocks, paintVerdict, settingOf, type RenderOptions } from './setting.js';

/** The largest error in words; a dash where none is known. */
function errorText({ largestError }: FileFigures): string {
  return largestError === null ? '–' : formatNumber(largestError);
}

/** The row of a file: its outcome, its distance from its bounds, and the reason why it fails. */
function fileRow(file: AuditedFile): readonly Cell[] {
  const status = fileStatus(file);
  const figures = fileFigures(file);
  const reason = fileReason(file);
  const [share, error] =
    figures === null
      ? ['', '']
      : [`${formatUse(figures.share)} ${figures.label}`, errorText(figures)];
  return [
    { text: status, tone: status === 'PASS' ? 'success' : 'failure' },
    share,
    error,
    plainText(reason === '' ? file.path : `${file.path}: ${reason}`),
  ];
}

const headings = ['Verdict', 'Bound used', 'Largest error', 'File'] as const;

/**
 * The report of several files for a terminal, newline at the end: the verdict, and a table with a row for
 * each file in the order given. Characters of file names that could act on the terminal are written as
 * \u{hex}.
 */
export function renderAudits(report: AuditsReport, options: RenderOptions = {}): string {
  const setting = settingOf(options);
  const { verdict, files, tool, seconds, created } = report;
  const isMixed = files.some((file) => fileFigures(file)?.largestError === null);
  const rows: TableRow[] = [headings.map((text) => heading(text)), ...files.map(fileRow)];
  const lines = wrapText(plainText(verdict.sentence), setting.columns);
  return joinBlocks([
    paintVerdict(lines, verdict.status, verdict.pass, setting),
    setting.table(rows, ['left', 'right', 'right', 'left']),
    setting.indented(
      `The largest error is that of the output, in its units${isMixed ? '; errors of linear attention are not profiled' : ''}. ${tool.name} ${plainText(tool.version)}, ${created}, ${formatNumber(seconds)} s`,
    ),
  ]);
}
