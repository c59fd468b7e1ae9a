import type { ElementTest, ErrorProfile, NumberTest } from '../../audit/index.js';
import { reasonOf, stated, type StatedVerdict, type VerdictStatus } from '../../words/index.js';
import type { AuditReport } from './audit-report.js';
import { describeReportedProblem } from './reported/problem.js';
import type { ChainReport } from './contracts/chain-report.js';
import type { LinkReport } from './contracts/link-report.js';
import { describeReportedRecurrence, type RecurrentReport } from './contracts/recurrent-report.js';
import { fromReported } from './report-number.js';
import { mainOutput, type ReportedOutput } from './reported/outputs.js';

/** The report of one file of any kind. */
export type FileReport = AuditReport | RecurrentReport | LinkReport | ChainReport;

/** One of the audited files. */
export interface AuditedFile {
  /** Path as given by the user. */
  readonly path: string;
  /** The report of the file; null where the file could not be judged. */
  readonly report: FileReport | null;
  /** The reason why it could not be judged, in one line; null where it was judged. */
  readonly error: string | null;
}

/** A file without a report, because it could not be judged. */
export interface UnjudgedFile extends AuditedFile {
  readonly report: null;
  readonly error: string;
}

/** Number of files by outcome. */
interface FileCounts {
  readonly files: number;
  readonly passed: number;
  /** Number of files that failed, or had no bound to judge by. */
  readonly failed: number;
  /** Number of files that could not be judged. */
  readonly wrong: number;
}

/** The report of an audit of several files, in their given order: audits.schema.json. */
export interface AuditsReport {
  readonly kind: 'audits';
  readonly schemaVersion: 1;
  readonly tool: { readonly name: 'flashproof'; readonly version: string };
  /** ISO 8601, UTC. */
  readonly created: string;
  /** Seconds for all files together. */
  readonly seconds: number;
  readonly verdict: FileCounts & StatedVerdict & { readonly pass: boolean };
  readonly files: readonly AuditedFile[];
}

/** Whether a file could not be judged. */
export function isUnjudged(file: AuditedFile): file is UnjudgedFile {
  return file.report === null;
}

function countFiles(files: readonly AuditedFile[]): FileCounts {
  const wrong = files.filter(isUnjudged).length;
  const passed = files.filter(({ report }) => report?.verdict.pass).length;
  return { files: files.length, passed, failed: files.length - wrong - passed, wrong };
}

/** "3 files pass" and the like; "1 file fails". */
function clause(count: number, singular: string, plural: string): string {
  return `${count} ${count === 1 ? singular : plural}`;
}

/** Whether all files pass, and a sentence on the outcomes. */
function filesVerdict(files: readonly AuditedFile[]): AuditsReport['verdict'] {
  const counts = countFiles(files);
  const { passed, failed, wrong } = counts;
  const pass = passed === files.length && passed > 0;
  const unjudged = files.filter((file) => fileStatus(file) === 'NOT JUDGED').length;
  const failing = failed - unjudged;
  const clauses = [
    ...(failing === 0 ? [] : [clause(failing, 'file fails', 'files fail')]),
    ...(unjudged === 0 ? [] : [clause(unjudged, 'file has', 'files have') + ' nothing to judge']),
    ...(wrong === 0 ? [] : [clause(wrong, 'file cannot be judged', 'files cannot be judged')]),
    ...(passed === 0 ? [] : [clause(passed, 'file passes', 'files pass')]),
  ];
  const status = pass ? 'PASS' : failing > 0 ? 'FAIL' : 'NOT JUDGED';
  const reason = `${clauses.join(', ') || 'there is no file'}.`;
  return { pass, ...stated(status, reason), ...counts };
}

/** The status of a file's row: that of its verdict, or `ERROR` for a file that could not be judged. */
export function fileStatus({ report }: AuditedFile): VerdictStatus | 'ERROR' {
  return report === null ? 'ERROR' : report.verdict.status;
}

/** The verdict of a file without its status, or the reason why it could not be judged; empty for a plain pass. */
export function fileReason({ path, report, error }: AuditedFile): string {
  if (report === null) {
    const said = error ?? '';
    return said.startsWith(`${path}: `) ? said.slice(path.length + 2) : said;
  }
  if (report.verdict.pass)
    return report.warnings.length === 0 ? '' : 'not all of its inputs are used';
  return reasonOf(report.verdict);
}

/** The sizes and settings of the problem of a report of any kind, in the words of one sentence. */
export function describeFileProblem(report: FileReport): string {
  if (report.kind === 'link-audit' || report.kind === 'chain-audit')
    return report.problem.description;
  return report.kind === 'recurrent-audit'
    ? describeReportedRecurrence(report.problem)
    : describeReportedProblem(report.problem);
}

/** The numbers of a file's row in a table. */
export interface FileFigures {
  /** The largest share of its bound that any quantity uses, and the label of that quantity. */
  readonly share: number;
  readonly label: string;
  /** The largest absolute error of the main output, or, without it, of the first gradient; null of linear attention, whose errors are not profiled. */
  readonly largestError: number | null;
}

function shareOf(output: ReportedOutput): number {
  return output.row === 'vector'
    ? fromReported<ElementTest>(output.elements).worstRatio
    : fromReported<NumberTest>(output.numbers).worstRatio;
}

function recurrentFigures({ quantities }: RecurrentReport): FileFigures | null {
  const all = quantities.map(({ label, elements }) => {
    const { worstRatio } = fromReported<ElementTest>(elements);
    return { label, share: worstRatio };
  });
  if (all.length === 0) return null;
  const { label, share } = all.reduce((a, b) => (b.share > a.share ? b : a));
  return { label, share, largestError: null };
}

/** The numbers of a judged file; null where nothing was judged, and of links of the decode chain, whose parts are right or wrong. */
export function fileFigures({ report }: AuditedFile): FileFigures | null {
  if (report === null || report.kind === 'link-audit' || report.kind === 'chain-audit') return null;
  if (report.kind === 'recurrent-audit') return recurrentFigures(report);
  const gradients = report.gradients?.gradients ?? [];
  const main = report.outputs === null ? gradients.at(0) : mainOutput(report);
  if (main === undefined) return null;
  const shares = [
    ...(report.outputs ?? []).map((output) => ({ label: output.label, share: shareOf(output) })),
    ...gradients.map(({ label, elements }) => ({
      label,
      share: fromReported<ElementTest>(elements).worstRatio,
    })),
  ];
  const worst = shares.reduce((a, b) => (b.share > a.share ? b : a));
  const { absolute } = fromReported<ErrorProfile>(main.error);
  return { ...worst, largestError: absolute.max };
}

/** The report of several files. */
export function createAuditsReport(
  files: readonly AuditedFile[],
  { version, seconds, created = new Date() }: AuditsProvenance,
): AuditsReport {
  return {
    kind: 'audits',
    schemaVersion: 1,
    tool: { name: 'flashproof', version },
    created: created.toISOString(),
    seconds,
    verdict: filesVerdict(files),
    files: files.map(({ path, report, error }) => ({ path, report, error })),
  };
}

/** The program that judged several files, and the time. */
export interface AuditsProvenance {
  /** The tool's version. */
  readonly version: string;
  /** Wall-clock time of all files together. */
  readonly seconds: number;
  /** Default: now. */
  readonly created?: Date;
}
