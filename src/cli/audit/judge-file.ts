import { availableParallelism } from 'node:os';
import type { Identification } from '../../attribution/index.js';
import { namesRead, openDeclaring, type TensorFile } from '../../io/index.js';
import {
  auditKernel,
  declaredArithmetic,
  secondsSince,
  type AuditCallbacks,
  type AuditResult,
  type JudgedOutputs,
} from '../../jobs/index.js';
import type { ComparedOutput } from '../../report/html/index.js';
import {
  createExecutionFailureReport,
  reportedComparison,
  withMachineFindings,
  type AuditReport,
} from '../../report/json/index.js';
import { renderIdentification } from '../../report/text/attribution/index.js';
import { gatherSketch, type AuditSketch } from '../../report/text/index.js';
import { terminalLooks } from '../terminal.js';
import type { AuditSettings } from './audit-settings.js';
import { createComparison, type OutputComparison } from './compared-outputs.js';
import { emulatedBackward } from './emulated-gradients.js';
import { gradientArguments, hasOutput, readGradients } from './gradient-files.js';
import {
  addGradients,
  judgeGradientsAlone,
  obtainGradients,
  rejectBesideGradients,
  rejectKeysAlone,
} from './judge-gradients.js';
import { arithmeticRequest, measuredModel } from './kernel-choice.js';
import { gradientsOf, openJudgedTemplate } from './launched-kernel.js';
import { obtainOutputs, withNaturalLse } from './obtain-outputs.js';
import { openProblem, originOf, type OpenProblem } from './open-problem.js';
import type { AuditCommandOptions } from './options.js';
import { openSample, type OpenSample } from './sampled-file.js';
import { judgeSplitResults, readSplits } from './split-results.js';
import { rejectShorterFormats, withStrictNote } from './strict-premises.js';

/** The result of judging one file: its report, and the documents beside it. */
export interface JudgedFile {
  readonly report: AuditReport;
  /** The HTML of --html. */
  readonly page: string | null;
  readonly identification: Identification | null;
  readonly sketch: AuditSketch | null;
}

/** The outputs of --compare, each beside the judged one; none without. */
async function compareVersions(
  comparison: OutputComparison | null,
  { file, reading }: OpenProblem,
  { outputs, sources }: JudgedOutputs,
  { problem, origin, audit: { falseAlarmRate } }: AuditResult,
): Promise<readonly ComparedOutput[]> {
  if (comparison === null) return [];
  return comparison.compare(problem, file, {
    output: { tensor: outputs.out, source: sources.out },
    reading,
    falseAlarmRate,
    provenance: origin,
  });
}

/** The data for the sparklines of --full; null if none are drawn. */
function sketchOf({ reference, audit, report }: AuditResult, { full }: AuditCommandOptions) {
  // Of a sample of rows a line by query would have holes.
  const isWhole = report.sample === null;
  return isWhole && terminalLooks(process.stdout).sparklines && full === true
    ? gatherSketch({ reference, outputs: audit.outputs })
    : null;
}

/** Judges a sample of the rows of a long problem, whose keys and values stay in the file. */
async function judgeSample(
  file: TensorFile,
  { outline, file: sampledFile, sources, declared }: OpenSample,
  audit: AuditSettings,
  { start, progress }: Pick<AuditCallbacks, 'progress'> & { readonly start: number },
): Promise<JudgedFile> {
  const { options, context, falseAlarmRate } = audit;
  const { sampled } = sampledFile;
  const { outputs } = withNaturalLse({ outputs: sampled.outputs, sources }, options);
  const read = namesRead(file, audit.problem);
  rejectShorterFormats(outline, outputs, options);
  const { report } = await auditKernel(
    {
      problem: outline,
      outputs,
      sampledFile: { ...sampledFile, sampled: { ...sampled, outputs } },
      declared,
      strictPremises: options.strictPremises,
      falseAlarmRate,
      threads: options.threads ?? availableParallelism(),
      techniques: options.techniques,
      measured: null,
      identify: false,
      models: context.models,
      origin: await originOf({ file, read }, sources, options),
      start,
    },
    progress === undefined ? {} : { progress },
  );
  const noted = withStrictNote(report, file, options);
  return { report: noted, page: null, identification: null, sketch: null };
}

/** Judges a file that is open; see `judgeFile`. */
async function judgeOpenFile(
  file: TensorFile,
  audit: AuditSettings,
  progress: NonNullable<AuditCallbacks['progress']>,
): Promise<JudgedFile> {
  const { path } = file;
  const { options, context, falseAlarmRate } = audit;
  const start = performance.now();
  const html =
    options.html === undefined
      ? null
      : (await import('./html-page.js')).createHtmlAudit(path, options, context);
  const comparison = options.compare === undefined ? null : createComparison(options);
  const watchers = [html, comparison].filter((watcher) => watcher !== null);
  const wanted = gradientArguments(file, options);
  const template = await openJudgedTemplate(options);
  const makesGradients = template !== null && gradientsOf(template).length > 0;
  if (wanted === null && !makesGradients) rejectKeysAlone(options);
  const sample =
    wanted === null ? await openSample(file, audit, arithmeticRequest(file, audit, false)) : null;
  if (sample !== null) return await judgeSample(file, sample, audit, { start, progress });
  const open = await openProblem(file, audit, template);
  const { problem } = open;
  const judgedAlone = async (report: AuditReport): Promise<JudgedFile> => {
    const page = (await html?.render(report, null, [], null)) ?? null;
    return { report, page, identification: null, sketch: null };
  };
  if (wanted !== null && !hasOutput(file, options)) {
    const read = await readGradients(file, wanted, open.reading);
    return await judgedAlone(await judgeGradientsAlone(open, read, audit, { start, progress }));
  }
  if (wanted !== null) rejectBesideGradients(options, false);
  const backward = emulatedBackward(file, problem, options, context.models);
  const hasGradients = wanted !== null || (backward?.model ?? null) !== null || makesGradients;
  const arithmetic = arithmeticRequest(file, audit, hasGradients);
  const declared = declaredArithmetic(problem, arithmetic);
  const obtained = await obtainOutputs(open, audit, arithmetic, template);
  if ('failure' in obtained) {
    const origin = { ...(await originOf(open, null, options)), seconds: secondsSince(start) };
    return await judgedAlone(createExecutionFailureReport(problem, obtained.failure, origin));
  }
  const { judged, machine = null } = obtained;
  const withMachine = <Report extends AuditReport>(report: Report) =>
    machine === null ? report : withMachineFindings(report, machine);
  if (judged === null) {
    const { gradients } = obtained;
    const report = await judgeGradientsAlone(open, gradients, audit, { start, progress });
    return await judgedAlone(withMachine(report));
  }
  const splits = await readSplits(file, open.reading, options);
  const made = obtained.gradients;
  const gradients = await obtainGradients(open, { wanted, backward, made }, judged, options);
  const sources = { ...judged.sources, ...gradients?.sources };
  rejectShorterFormats(problem, { ...judged.outputs, ...gradients?.tensors }, options);
  const result = await auditKernel(
    {
      problem,
      outputs: judged.outputs,
      declared,
      strictPremises: options.strictPremises,
      falseAlarmRate,
      rows: hasGradients && audit.rows.count === null ? { count: 'all' } : audit.rows,
      threads: options.threads ?? availableParallelism(),
      techniques: options.techniques,
      measured: measuredModel(options, arithmetic),
      identify: options.identify === true,
      models: context.models,
      origin: await originOf({ ...open, unasked: judged.unasked ?? [] }, sources, options),
      start,
    },
    {
      progress,
      ...(watchers.length === 0
        ? {}
        : { onElements: (elements) => watchers.forEach((one) => one.onElements(elements)) }),
    },
    context.lasting,
  );
  const { identification } = result;
  const compared = await compareVersions(comparison, open, judged, result);
  const withParts = withMachine(
    await addGradients(
      judgeSplitResults(result, splits, declared, falseAlarmRate),
      gradients,
      backward,
      { problem, judged, result, arithmetic, settings: audit },
    ),
  );
  const noted = withStrictNote(withParts, file, options);
  const report =
    compared.length === 0 ? noted : { ...noted, comparison: reportedComparison(compared) };
  const identified = identification === null ? null : renderIdentification(identification);
  return {
    report,
    page: (await html?.render(report, result.problem, compared, identified)) ?? null,
    identification,
    sketch: sketchOf(result, options),
  };
}

/**
 * Judges one file: reads the problem, gets the outputs from files, from a live kernel or from a model, and
 * judges them.
 * @param progress see `AuditCallbacks`
 * @throws RequestError for a file that cannot be judged
 */
export async function judgeFile(
  path: string,
  audit: AuditSettings,
  progress: NonNullable<AuditCallbacks['progress']>,
): Promise<JudgedFile> {
  const file = await openDeclaring(path, audit.formats);
  try {
    const judged = await judgeOpenFile(file, audit, progress);
    file.checkDeclared();
    return judged;
  } finally {
    await file.close();
  }
}
