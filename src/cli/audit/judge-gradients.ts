import { backwardOf, kernelModels } from '../../../kernels/index.js';
import {
  parseGradientDeclaration,
  type GradientAuditOptions,
  type GradientDeclaration,
  type GradientPremises,
} from '../../audit/index.js';
import {
  naturalLse,
  declaredGradients,
  secondsSince,
  type ArithmeticRequest,
  type AuditCallbacks,
  type AuditResult,
  type JudgedOutputs,
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
  isFitWanted,
  judgeGradientFiles,
  premisesBesideFit,
  readGradients,
  readLoneLse,
  type GradientArguments,
  type ReadGradients,
} from './gradient-files.js';
import { arithmeticRequest } from './kernel-choice.js';
import { matchModels } from './model-matches.js';
import { originOf, type OpenProblem } from './open-problem.js';
import { rejectShorterFormats } from './strict-premises.js';
import type { AuditCommandOptions } from './options.js';

/**
 * The premises that --gradient-premise declares. @throws RequestError for an unknown premise or value,
 * and for a request for premises that fit beside --strict-premises
 */
function gradientDeclaration({
  gradientPremise = [],
  strictPremises,
}: AuditCommandOptions): GradientDeclaration {
  if (strictPremises === true && isFitWanted(gradientPremise))
    throw new RequestError(
      '--gradient-premise fit tells which premises fit, and --strict-premises tells none; leave out one',
    );
  return parseGradientDeclaration(premisesBesideFit(gradientPremise), '--gradient-premise');
}

/** @throws RequestError for options that apply to an output but not to gradients alone, and for an unknown premise */
export function rejectBesideGradients(options: AuditCommandOptions, isAlone: boolean): void {
  gradientDeclaration(options);
  if (isAlone && options.compare !== undefined)
    throw new RequestError(
      '--compare is about the output, and there are gradients only; leave it out, or give --output',
    );
}

/** @throws RequestError for a sample of keys without gradients */
export function rejectKeysAlone({ keys }: AuditCommandOptions): void {
  if (keys !== undefined)
    throw new RequestError(
      '--keys judges dK and dV of a sample of keys, and there are no gradients; leave it out, or give dout with dk or dv',
    );
}

/** The samples of rows and of keys that gradients are judged by. */
export type GradientSamples = Required<Pick<GradientAuditOptions, 'rows' | 'keys'>>;

/** The samples that options ask for, drawn with one seed; null for all. */
export function gradientSamples({ rows, keys }: AuditSettings): GradientSamples {
  const { seed = 0 } = rows;
  return {
    rows: typeof rows.count === 'number' ? { rows: rows.count, seed } : null,
    keys: typeof keys === 'number' ? { keys, seed } : null,
  };
}

/** @throws RequestError for a model of the forward pass alone, by which gradients cannot be judged */
function rejectForwardModel({ as, models = kernelModels }: ArithmeticRequest): void {
  const model = models.find(({ name }) => name === as);
  if (model !== undefined) backwardOf(model);
}

/** Judges gradients whose output is not available. */
export async function judgeGradientsAlone(
  open: OpenProblem,
  read: ReadGradients,
  audit: AuditSettings,
  { start, progress }: Required<Pick<AuditCallbacks, 'progress'>> & { readonly start: number },
): Promise<AuditReport> {
  const { file, problem, reading } = open;
  const { options, falseAlarmRate } = audit;
  rejectBesideGradients(options, true);
  rejectShorterFormats(problem, { ...read.tensors }, options);
  const lse = await readLoneLse(file, options, reading);
  const forward = { out: null, lse: lse && naturalLse(lse.tensor, options.lseBase) };
  const arithmetic = arithmeticRequest(file, audit, true);
  rejectForwardModel(arithmetic);
  const premises = premisesOf(problem, read, arithmetic, options);
  const by = {
    falseAlarmRate,
    ...(premises === undefined ? {} : { premises }),
    declared: gradientDeclaration(options),
    strictPremises: options.strictPremises ?? false,
    ...gradientSamples(audit),
    progress: (done: number) => progress('oracle', done),
  };
  const gradients = await judgeGradientFiles(problem, read, forward, by, options);
  const sources = { ...read.sources, ...(lse === null ? {} : { lse: lse.source }) };
  const origin = await originOf(open, sources, options);
  const models = await matchModels(problem, read, forward, audit, arithmetic);
  return createGradientsReport(
    problem,
    { ...gradients, models },
    { ...origin, seconds: secondsSince(start) },
  );
}

/** The premises to judge gradients by; undefined for those of any correct kernel. */
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

/**
 * Sources of the gradients of an audit: files, the backward pass of a model, or a compiled kernel; each
 * is null if it does not apply.
 */
export interface GradientOrigin {
  readonly wanted: GradientArguments | null;
  readonly backward: EmulatedBackward | null;
  /** Gradients that a compiled kernel produced. */
  readonly made: ReadGradients | null;
}

/**
 * Reads gradients, or computes them from the stored results of the model's forward pass; null for none.
 * @throws RequestError where that fails
 */
export async function obtainGradients(
  open: OpenProblem,
  { wanted, backward, made }: GradientOrigin,
  judged: JudgedOutputs,
  options: AuditCommandOptions,
): Promise<ReadGradients | null> {
  if (made !== null) return made;
  if (wanted !== null) return readGradients(open.file, wanted, open.reading);
  const model = backward?.model ?? null;
  return model === null ? null : emulateGradients(open, model, judged, options);
}

/** A judged output, with the settings for judging its gradients. */
export interface GradientSetting {
  /** The whole problem, whichever rows of the output were judged. */
  readonly problem: Problem;
  readonly judged: JudgedOutputs;
  readonly result: AuditResult;
  readonly arithmetic: ArithmeticRequest;
  readonly settings: AuditSettings;
}

/** The report with the gradients, or with the reason that a model's are not judged. */
export async function addGradients(
  report: JudgedReport,
  read: ReadGradients | null,
  backward: EmulatedBackward | null,
  { problem, judged, result, arithmetic, settings }: GradientSetting,
): Promise<JudgedReport> {
  if (read === null)
    return backward === null || backward.model !== null
      ? report
      : withNote(report, `no gradients are judged: ${backward.reason}`);
  const { out, lse } = judged.outputs;
  const premises = premisesOf(problem, read, arithmetic, settings.options);
  const by = {
    reference: result.reference,
    falseAlarmRate: settings.falseAlarmRate,
    declared: gradientDeclaration(settings.options),
    strictPremises: settings.options.strictPremises ?? false,
    ...gradientSamples(settings),
    ...(premises === undefined ? {} : { premises }),
  };
  const gradients = await judgeGradientFiles(problem, read, { out, lse }, by, settings.options);
  const models = await matchModels(problem, read, { out, lse }, settings, arithmetic);
  return withGradients(report, { ...gradients, models });
}
