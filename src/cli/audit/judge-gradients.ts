import { secondsSince, type AuditCallbacks, type AuditResult } from '../../jobs/index.js';
import {
  createGradientsReport,
  withGradients,
  type AuditReport,
  type JudgedReport,
} from '../../report/json/index.js';
import { RequestError } from '../../request-error.js';
import type { AuditSettings } from './audit-settings.js';
import {
  judgeGradientFiles,
  readGradients,
  readLoneLse,
  type GradientArguments,
  type ReadGradients,
} from './gradient-files.js';
import type { JudgedOutputs } from './judged-outputs.js';
import { originOf, type OpenProblem } from './open-problem.js';
import type { AuditCommandOptions } from './options.js';
import { naturalLse } from './split-results.js';

/** @throws RequestError for what is asked for beside gradients and is of all rows or of the output */
export function rejectBesideGradients(
  { rows, identify, compare }: AuditCommandOptions,
  isAlone: boolean,
): void {
  if (rows !== undefined && rows !== 'all')
    throw new RequestError(
      '--rows judges a sample, but every row adds to the gradients of keys and values; leave it out, or name the output alone with --output',
    );
  if (isAlone && (identify === true || compare !== undefined))
    throw new RequestError(
      `${identify === true ? '--identify' : '--compare'} is about the output, and there are gradients only; leave it out, or give --output`,
    );
}

/** Judges gradients of which the output is not there. */
export async function judgeGradientsAlone(
  open: OpenProblem,
  wanted: GradientArguments,
  audit: AuditSettings,
  { start, progress }: Required<Pick<AuditCallbacks, 'progress'>> & { readonly start: number },
): Promise<AuditReport> {
  const { file, problem, reading } = open;
  const { options, falseAlarmRate } = audit;
  rejectBesideGradients(options, true);
  const read = await readGradients(file, wanted, reading);
  const lse = await readLoneLse(file, options, reading);
  const forward = { out: null, lse: lse && naturalLse(lse.tensor, options.lseBase) };
  const gradients = judgeGradientFiles(problem, read, forward, {
    falseAlarmRate,
    progress: (done) => progress('oracle', done),
  });
  const sources = { ...read.sources, ...(lse === null ? {} : { lse: lse.source }) };
  const origin = await originOf(open, sources, options);
  return createGradientsReport(problem, gradients, { ...origin, seconds: secondsSince(start) });
}

/** A report with the gradients, where there are any. */
export function addGradients(
  report: JudgedReport,
  read: ReadGradients | null,
  { outputs: { out, lse } }: JudgedOutputs,
  { problem, reference, audit: { falseAlarmRate } }: AuditResult,
): JudgedReport {
  if (read === null) return report;
  const options = { reference, falseAlarmRate };
  return withGradients(report, judgeGradientFiles(problem, read, { out, lse }, options));
}
