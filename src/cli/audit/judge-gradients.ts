import type { GradientPremises } from '../../audit/index.js';
import {
  declaredGradients,
  secondsSince,
  type ArithmeticRequest,
  type AuditCallbacks,
  type AuditResult,
} from '../../jobs/index.js';
import type { Problem } from '../../problem/index.js';
import {
  createGradientsReport,
  withGradients,
  withNote,
  type AuditReport,
  type JudgedReport,
} from '../../report/json/index.js';
import { RequestError } from '../../request-error.js';
import { kernelSettings } from '../options/settings.js';
import type { AuditSettings } from './audit-settings.js';
import { emulateGradients, type EmulatedBackward } from './emulated-gradients.js';
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

/** The premises by which gradients are judged; undefined for those of any correct kernel. */
function premisesOf(
  problem: Problem,
  { tensors: { dq, dk, dv } }: ReadGradients,
  arithmetic: ArithmeticRequest,
  { set }: AuditCommandOptions,
): GradientPremises | undefined {
  const format = (dq ?? dk ?? dv)?.format;
  return format === undefined
    ? undefined
    : declaredGradients(problem, arithmetic, kernelSettings(set), format);
}

/** Where the gradients of an audit come from: files, or the backward pass of a model; null for neither. */
export interface GradientOrigin {
  readonly wanted: GradientArguments | null;
  readonly backward: EmulatedBackward | null;
}

/** Reads gradients, or makes them from what the model's forward stored; null for none. @throws RequestError where that fails */
export async function obtainGradients(
  open: OpenProblem,
  { wanted, backward }: GradientOrigin,
  judged: JudgedOutputs,
  options: AuditCommandOptions,
): Promise<ReadGradients | null> {
  if (wanted !== null) return readGradients(open.file, wanted, open.reading);
  const model = backward?.model ?? null;
  return model === null ? null : emulateGradients(open, model, judged, options);
}

/** A judged output, and what its gradients are judged by. */
export interface GradientSetting {
  readonly judged: JudgedOutputs;
  readonly result: AuditResult;
  readonly arithmetic: ArithmeticRequest;
  readonly options: AuditCommandOptions;
}

/** A report with the gradients, or with why a model's are not judged. */
export function addGradients(
  report: JudgedReport,
  read: ReadGradients | null,
  backward: EmulatedBackward | null,
  { judged, result, arithmetic, options }: GradientSetting,
): JudgedReport {
  if (read === null)
    return backward === null || backward.model !== null
      ? report
      : withNote(report, `no gradients are judged: ${backward.reason}`);
  const { out, lse } = judged.outputs;
  const { problem, reference, audit } = result;
  const premises = premisesOf(problem, read, arithmetic, options);
  const { falseAlarmRate } = audit;
  const by = { reference, falseAlarmRate, ...(premises === undefined ? {} : { premises }) };
  return withGradients(report, judgeGradientFiles(problem, read, { out, lse }, by));
}
