import { findRecurrentModel, kernelModels } from '../../../kernels/index.js';
import type { JudgedElements } from '../../audit/index.js';
import {
  declaringFile,
  namesRead,
  recurrentFamily,
  refuseMisnamedInputs,
  renamedFile,
} from '../../io/tensors/index.js';
import { gatherPlotData, type HtmlReport, type PlotData } from '../../report/html/index.js';
import {
  createExecutionFailureReport,
  reportedComparison,
  withMachineFindings,
  type AuditReport,
  type ChainReport,
  type LinkReport,
  type RecurrentReport,
} from '../../report/json/index.js';
import { RequestError } from '../../request-error.js';
import { auditKernel, type AuditResult } from './audit-kernel.js';
import { type AuditSettings, rejectShorterFormats, withStrictNote } from './audit-settings.js';
import type { AuditWork, FileAuditMeans } from './audit-work.js';
import { createComparison } from './compare-outputs.js';
import {
  arithmeticRequest,
  declaredArithmetic,
  declaredModel,
  modelNamed,
  settingsOfForward,
  type ArithmeticRequest,
  type DeclaredArithmetic,
} from './declared-arithmetic.js';
import { secondsSince } from './document-head.js';
import { exp2Curves } from './exp2-curves.js';
import {
  judgeGradientsAlone,
  rejectBesideGradients,
  rejectKeysAlone,
  withJudgedGradients,
} from './judge-gradients.js';
import type { ObtainedResults, OpenProblem, ReadyKernel } from './kernel-source.js';
import { openProblem, originOf } from './open-problem.js';
import { gradientPlaces, hasOutput, readGradients, type GradientPlaces } from './read-gradients.js';
import {
  namedOutputs,
  naturalLse,
  outputRenames,
  readOutputs,
  type JudgedOutputs,
} from './read-outputs.js';
import { auditChain, chainOf } from './links/audit-chain.js';
import { auditLink, linkContractOf } from './links/audit-link.js';
import { auditRecurrence } from './recurrent/audit-recurrence.js';
import { openSample, type OpenSample } from './sampled-file.js';
import { judgeSplitResults, readSplits } from './split-results.js';

/** The result of auditing one file. */
export interface FileAudit {
  readonly report: AuditReport;
  /** The content of the HTML report; null where that was not asked for. */
  readonly page: Omit<HtmlReport, 'commands' | 'identification'> | null;
  /** The audit of the output; null where there was none to judge. */
  readonly result: AuditResult | null;
}

/** The result of auditing one file of linear attention, or of links of the decode chain, whose reports have no plots. */
export interface PlainFileAudit {
  readonly report: RecurrentReport | LinkReport | ChainReport;
  readonly page: null;
  readonly result: null;
}

/** An audit whose problem is read. */
interface OpenWork extends AuditWork {
  readonly open: OpenProblem;
  /** The gradients in files to judge; null for none. */
  readonly wanted: GradientPlaces | null;
  /** The kernel that gives the results; null for those in files. */
  readonly kernel: ReadyKernel | null;
  readonly comparison: ReturnType<typeof createComparison>;
  readonly arithmetic: ArithmeticRequest;
  readonly declared: DeclaredArithmetic;
}

/** Outputs whose LSE is a natural logarithm, by --lse-base; a model's is one. */
function withNaturalLse(judged: JudgedOutputs, { kernel, lseBase }: AuditSettings): JudgedOutputs {
  const { lse } = judged.outputs;
  if (lse === null || kernel !== undefined) return judged;
  return { ...judged, outputs: { ...judged.outputs, lse: naturalLse(lse, lseBase) } };
}

/** The model whose techniques are measured: the kernel's own; for the page of plots, a declared one. */
function measuredModel({ kernel, plots }: AuditSettings, declared: ArithmeticRequest) {
  const name = kernel ?? (plots ? declaredModel(declared) : undefined);
  return name === undefined
    ? null
    : { model: modelNamed(name, declared.models), settings: declared.settings() };
}

/** A report with the machine's findings, if there are any. */
function withMachine<Report extends AuditReport>(
  report: Report,
  machine: ObtainedResults['machine'],
): Report {
  return machine === undefined ? report : withMachineFindings(report, machine);
}

/** Judges a sample of the rows of a long problem, whose keys and values stay in the file. */
async function auditSample(
  work: AuditWork,
  { outline, file: sampledFile, sources, declared }: OpenSample,
): Promise<FileAudit> {
  const { file, settings, means, progress, start } = work;
  const { sampled } = sampledFile;
  const { outputs } = withNaturalLse({ outputs: sampled.outputs, sources }, settings);
  rejectShorterFormats(outline, outputs, settings);
  const result = await auditKernel(
    {
      ...settings,
      problem: outline,
      outputs,
      sampledFile: { ...sampledFile, sampled: { ...sampled, outputs } },
      declared,
      measured: null,
      identify: false,
      origin: await originOf(work, { read: namesRead(file, settings.problem) }, sources),
      start,
    },
    { progress },
    means,
  );
  return { report: withStrictNote(result.report, file, settings), page: null, result };
}

/** The audit of a file without an output to judge. */
function withoutOutput({ settings }: AuditWork, report: AuditReport): FileAudit {
  const page = settings.plots ? { report, plots: null, compared: [], exp2: [] } : null;
  return { report, page, result: null };
}

/** Judges the output, and with it the splits, the gradients and the outputs to compare with. */
async function auditWithOutput(
  work: OpenWork,
  { judged, gradients, machine }: ObtainedResults & { readonly judged: JudgedOutputs },
): Promise<FileAudit> {
  const { file, settings, means, progress, start } = work;
  const { open, wanted, kernel, comparison, arithmetic, declared } = work;
  const { problem, reading } = open;
  const { outputs } = judged;
  const splits = await readSplits(file, reading, settings);
  const read = wanted === null ? gradients : await readGradients(file, wanted, reading);
  rejectShorterFormats(problem, { ...outputs, ...read?.tensors }, settings);
  const sources = { ...judged.sources, ...read?.sources };
  const gathered: { plots: PlotData | null } = { plots: null };
  const onElements = (elements: JudgedElements) => {
    if (settings.plots) gathered.plots = gatherPlotData(elements);
    comparison?.onElements(elements);
  };
  const result = await auditKernel(
    {
      ...settings,
      problem,
      outputs,
      declared,
      rows: read !== null && settings.rows.count === null ? { count: 'all' } : settings.rows,
      measured: measuredModel(settings, arithmetic),
      identify: settings.identify === true,
      origin: await originOf(work, { ...open, unasked: judged.unasked ?? [] }, sources),
      start,
    },
    { progress, ...(settings.plots || comparison !== null ? { onElements } : {}) },
    means,
  );
  const compared = (await comparison?.compare(open, judged, result)) ?? [];
  const withGradients = await withJudgedGradients(
    work,
    judgeSplitResults(result, splits, declared, settings.falseAlarmRate),
    read && { open, read, forward: outputs, arithmetic },
    kernel?.reason ?? null,
    result.reference,
  );
  const noted = withStrictNote(withMachine(withGradients, machine), file, settings);
  const report =
    compared.length === 0 ? noted : { ...noted, comparison: reportedComparison(compared) };
  const page = settings.plots
    ? { report, plots: gathered.plots, compared, exp2: curvesOf(settings, result) }
    : null;
  return { report, page, result };
}

/** The errors of 2^x of the model that is declared; none where none is. */
function curvesOf(settings: AuditSettings, { problem }: AuditResult): HtmlReport['exp2'] {
  const { kernel, as, models = kernelModels, modelSettings } = settings;
  const model = models.find(({ name }) => name === (kernel ?? as));
  return model === undefined
    ? []
    : exp2Curves(model, problem, settingsOfForward(settings, modelSettings(), true));
}

/** @throws RequestError for options and models of linear attention beside softmax attention */
function rejectRecurrentOptions({ file, settings }: AuditWork): void {
  const [option] = settings.recurrentOptions;
  if (option !== undefined)
    throw new RequestError(
      `${file.path}: ${option} is of linear attention, and the file's metadata has no family; give --family, or leave ${option} out`,
    );
  const { kernel } = settings;
  if (kernel !== undefined && findRecurrentModel(kernel) !== undefined)
    throw new RequestError(
      `${file.path}: ${kernel} is a model of linear attention, and the file's metadata has no family; give --family, or another --kernel`,
    );
}

/** @throws RequestError for options of links of the decode chain beside attention */
function rejectLinkOptions({ file, settings }: AuditWork): void {
  const [option] = settings.linkOptions;
  if (option !== undefined)
    throw new RequestError(
      `${file.path}: ${option} is of links of the decode chain, and this is attention; give --contract, or leave ${option} out`,
    );
}

async function auditOpenFile(work: AuditWork): Promise<FileAudit> {
  const { file, settings, start } = work;
  rejectRecurrentOptions(work);
  refuseMisnamedInputs(
    file,
    settings.source === null ? outputRenames(file, namedOutputs(settings)) : [],
  );
  const comparison = createComparison(settings, file.beside);
  const wanted = settings.source === null ? gradientPlaces(file, settings) : null;
  const opened = (await settings.source?.open()) ?? null;
  if (settings.keys !== null && wanted === null && opened?.givesGradients !== true)
    rejectKeysAlone();
  const sample =
    wanted === null
      ? await openSample(file, settings, arithmeticRequest(file, settings, false))
      : null;
  if (sample !== null) return auditSample(work, sample);
  const open = await openProblem(work, opened?.takes ?? []);
  if (wanted !== null && !hasOutput(file, settings)) {
    const read = await readGradients(file, wanted, open.reading);
    return withoutOutput(work, await judgeGradientsAlone(work, open, read));
  }
  if (wanted !== null) rejectBesideGradients(settings, false);
  const kernel = opened?.prepare(open) ?? null;
  const hasGradients = wanted !== null || kernel?.hasGradients === true;
  const arithmetic = arithmeticRequest(file, settings, hasGradients);
  const declared = declaredArithmetic(open.problem, arithmetic);
  const obtained: Awaited<ReturnType<ReadyKernel['run']>> =
    kernel === null
      ? { judged: await readOutputs(file, namedOutputs(settings), open.reading), gradients: null }
      : await kernel.run(arithmetic.settings);
  if ('failure' in obtained) {
    const origin = { ...(await originOf(work, open, {})), seconds: secondsSince(start) };
    const { failure } = obtained;
    return withoutOutput(work, createExecutionFailureReport(open.problem, failure, origin));
  }
  if (obtained.judged === null) {
    const report = await judgeGradientsAlone(work, open, obtained.gradients);
    return withoutOutput(work, withMachine(report, obtained.machine));
  }
  const judged = withNaturalLse(obtained.judged, settings);
  return auditWithOutput(
    { ...work, open, wanted, kernel, comparison, arithmetic, declared },
    { ...obtained, judged },
  );
}

/** Audits an open file of one contract. */
async function auditContract(work: AuditWork): Promise<FileAudit | PlainFileAudit> {
  const { file, settings } = work;
  const { ignored } = settings.problem;
  const contract = linkContractOf(file, settings);
  if (contract !== null)
    return { report: await auditLink(work, contract), page: null, result: null };
  rejectLinkOptions(work);
  const named = { ...work, file: renamedFile(file, settings.link.tensors ?? {}) };
  const family = recurrentFamily(file, { ...settings.recurrence, ignored });
  return family === null
    ? await auditOpenFile(named)
    : { report: await auditRecurrence(named, family), page: null, result: null };
}

/**
 * Audits a file: reads the problem, gets the results from files or from a kernel, and judges each kind of them in one
 * report.
 * @param progress see `AuditCallbacks`
 * @throws RequestError for a file that cannot be judged
 */
export async function auditFile(
  path: string,
  settings: AuditSettings,
  means: FileAuditMeans,
  progress: AuditWork['progress'],
): Promise<FileAudit | PlainFileAudit> {
  const { formats } = settings;
  const opened = await means.files.open(path, { formats, isOneOfSeveral: true });
  const file = declaringFile(opened, formats);
  try {
    const start = performance.now();
    const work = { file, settings, means, progress, start };
    const chain = chainOf(file, settings);
    const audited =
      chain === null
        ? await auditContract(work)
        : { report: await auditChain(work, chain, auditContract), page: null, result: null };
    file.checkDeclared();
    return audited;
  } finally {
    await file.close();
  }
}
