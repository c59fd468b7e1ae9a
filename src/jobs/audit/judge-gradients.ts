import { backwardOf, findModelAmong, kernelModels } from '../../../kernels/index.js';
import type { AttentionReference } from '../../../oracles/index.js';
import {
  auditGradients,
  auditGradientsApart,
  describeGradientFits,
  fitGradientPremises,
  parseGradientDeclaration,
  type GradientAudit,
  type GradientAuditOptions,
  type GradientDeclaration,
  type GradientTensors,
  type KernelOutputs,
} from '../../audit/index.js';
import type { Problem } from '../../problem/index.js';
import {
  createGradientsReport,
  reportedGradients,
  withGradients,
  withNote,
  type AuditReport,
  type JudgedReport,
  type ModelMatch,
  type ReportedGradients,
} from '../../report/json/index.js';
import { RequestError } from '../../request-error.js';
import { type AuditSettings, rejectShorterFormats } from './audit-settings.js';
import type { AuditWork } from './audit-work.js';
import {
  arithmeticRequest,
  declaredGradients,
  declaredModel,
  type ArithmeticRequest,
} from './declared-arithmetic.js';
import { secondsSince } from './document-head.js';
import type { OpenProblem } from './kernel-source.js';
import { originOf } from './open-problem.js';
import { readLoneLse, type ReadGradients } from './read-gradients.js';
import { naturalLse } from './read-outputs.js';
import { shareGroups } from './thread-work.js';
import type { StartThreads } from './threads.js';

interface GradientThreads {
  readonly threads: number;
  /** See `auditGradientsApart`. */
  readonly effort?: number | undefined;
  readonly startThreads: StartThreads;
}

/**
 * Judges gradients as `auditGradients`, on that many threads: the report does not depend on their number.
 * @throws RequestError as `auditGradients`
 */
export async function auditGradientsOnThreads(
  problem: Problem,
  tensors: GradientTensors,
  options: GradientAuditOptions,
  { threads, effort, startThreads }: GradientThreads,
): Promise<GradientAudit> {
  if (threads === 1) return auditGradients(problem, tensors, options);
  return auditGradientsApart(
    problem,
    tensors,
    options,
    {
      start: (data, groups) =>
        startThreads(Math.min(threads, groups), 'measureGroup', shareGroups(data)),
    },
    effort,
  );
}

/** The word, in place of a premise, that asks for narrower premises that fit. */
const fit = 'fit';

/**
 * The premises that --gradient-premise declares, and whether narrower ones that fit are asked for.
 * @throws RequestError for an unknown premise or value, and for a request for premises that fit beside --strict-premises
 */
function gradientDeclaration({ gradientPremise = [], strictPremises }: AuditSettings): {
  readonly declared: GradientDeclaration;
  readonly isFitWanted: boolean;
} {
  const words = gradientPremise.flatMap((text) => text.split(',')).map((word) => word.trim());
  const isFitWanted = words.includes(fit);
  if (strictPremises === true && isFitWanted)
    throw new RequestError(
      '--gradient-premise fit tells which premises fit, and --strict-premises tells none; leave out one',
    );
  const premises = words.filter((word) => word !== fit);
  return { declared: parseGradientDeclaration(premises, '--gradient-premise'), isFitWanted };
}

/** @throws RequestError for options that apply to an output but not to gradients alone, and for an unknown premise */
export function rejectBesideGradients(settings: AuditSettings, isAlone: boolean): void {
  gradientDeclaration(settings);
  if (isAlone && settings.compare !== undefined)
    throw new RequestError(
      '--compare is about the output, and there are gradients only; leave it out, or give --output',
    );
}

/** @throws RequestError for a sample of keys without gradients */
export function rejectKeysAlone(): never {
  throw new RequestError(
    '--keys judges dK and dV of a sample of keys, and there are no gradients; leave it out, or give dout with dk or dv',
  );
}

/** The forward pass's results that a backward pass read, as far as they are known. */
type KnownForward = { readonly [Name in keyof KernelOutputs]: KernelOutputs[Name] | null };

/** Gradients of a problem, with the arithmetic that they are judged by. */
interface GradientsToJudge {
  readonly open: OpenProblem;
  readonly read: ReadGradients;
  readonly forward: KnownForward;
  readonly arithmetic: ArithmeticRequest;
}

/**
 * Comparisons of gradients with kernel models, bit for bit: with a declared one, and by --identify with every one that has
 * a backward pass; none where neither is asked.
 * @throws RequestError for --identify where a sample is judged
 */
async function matchesOf(
  { settings, means: { matchModels } }: AuditWork,
  { open: { problem }, read: { tensors }, forward: { out, lse }, arithmetic }: GradientsToJudge,
): Promise<readonly ModelMatch[]> {
  const { kernel, identify, threads, rows, keys, models = kernelModels } = settings;
  const { dout, dq = null, dk = null, dv = null } = tensors;
  if (kernel !== undefined || [dq, dk, dv].every((one) => one === null)) return [];
  const name = declaredModel(arithmetic);
  const declared = name === undefined ? null : findModelAmong(models, name);
  const isSample = [rows.count, keys].some((count) => typeof count === 'number');
  if (isSample && identify === true)
    throw new RequestError(
      '--identify compares whole gradients, and a sample is judged; leave it out, or judge all with --rows all --keys all',
    );
  if (matchModels === null) return [];
  const forward = out === null || lse === null ? null : { out, lse };
  return matchModels(
    { problem, dout, forward, given: { dq, dk, dv }, threads },
    declared === null || declared.backward === null || isSample
      ? null
      : { model: declared, settings: settings.modelSettings() },
    identify === true ? models : [],
  );
}

/** Judges gradients, for a report. @throws RequestError for tensors that do not fit the problem */
async function judgeGradients(
  work: AuditWork,
  gradients: GradientsToJudge,
  known: Pick<GradientAuditOptions, 'reference' | 'progress'>,
): Promise<ReportedGradients> {
  const { settings, means } = work;
  const { falseAlarmRate, strictPremises = false, rows, keys, threads } = settings;
  const { open, read, forward, arithmetic } = gradients;
  const { problem } = open;
  const { dq, dk, dv } = read.tensors;
  const format = (dq ?? dk ?? dv)?.format;
  const premises =
    format && declaredGradients(problem, arithmetic, settings.modelSettings(), format);
  const { declared, isFitWanted } = gradientDeclaration(settings);
  const { seed } = rows;
  const options = {
    ...known,
    falseAlarmRate,
    declared,
    strictPremises,
    rows: typeof rows.count === 'number' ? { rows: rows.count, seed } : null,
    keys: typeof keys === 'number' ? { keys, seed } : null,
    ...(premises === undefined ? {} : { premises }),
  };
  const { startThreads } = means;
  const all = { ...read.tensors, ...forward };
  const audit = await auditGradientsOnThreads(problem, all, options, { threads, startThreads });
  const silent = { ...options, progress: () => undefined };
  const fits = isFitWanted
    ? { fits: describeGradientFits(fitGradientPremises(problem, all, silent)) }
    : {};
  const models = await matchesOf(work, gradients);
  return { ...reportedGradients(audit), ...fits, models };
}

/**
 * Judges gradients whose output is not available.
 * @throws RequestError as `rejectBesideGradients`, for tensors that do not fit the problem, and for a model of the forward
 * pass alone, by which gradients cannot be judged
 */
export async function judgeGradientsAlone(
  work: AuditWork,
  open: OpenProblem,
  read: ReadGradients,
): Promise<AuditReport> {
  const { file, settings, progress, start } = work;
  const { problem } = open;
  rejectBesideGradients(settings, true);
  rejectShorterFormats(problem, { ...read.tensors }, settings);
  const lse = await readLoneLse(file, settings, open.reading);
  const forward = { out: null, lse: lse && naturalLse(lse.tensor, settings.lseBase) };
  const arithmetic = arithmeticRequest(file, settings, true);
  const model = (arithmetic.models ?? kernelModels).find(({ name }) => name === arithmetic.as);
  if (model !== undefined) backwardOf(model);
  const gradients = await judgeGradients(
    work,
    { open, read, forward, arithmetic },
    { progress: (done) => progress('oracle', done) },
  );
  const sources = { ...read.sources, ...(lse === null ? {} : { lse: lse.source }) };
  const origin = await originOf(work, open, sources);
  return createGradientsReport(problem, gradients, { ...origin, seconds: secondsSince(start) });
}

/**
 * A report with the gradients, or with the reason that there are none to judge.
 * @param reference the exact attention of the judged rows
 */
export async function withJudgedGradients(
  work: AuditWork,
  report: JudgedReport,
  gradients: GradientsToJudge | null,
  reason: string | null,
  reference: AttentionReference,
): Promise<JudgedReport> {
  if (gradients !== null)
    return withGradients(report, await judgeGradients(work, gradients, { reference }));
  return reason === null ? report : withNote(report, `no gradients are judged: ${reason}`);
}
