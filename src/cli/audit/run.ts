import type { Identification } from '../../attribution/index.js';
import {
  atomicWriteFile,
  hashTensorFile,
  openTensorFile,
  problemLayout,
  problemNote,
  readProblem,
  unusedInputs,
  type TensorFile,
} from '../../io/index.js';
import {
  auditKernel,
  declaredArithmetic,
  declaredModel,
  isModel,
  modelNamed,
  secondsSince,
  type ArithmeticRequest,
  type MeasuredModel,
} from '../../jobs/index.js';
import {
  createExecutionFailureReport,
  validateReport,
  type AuditReport,
  type Provenance,
} from '../../report/json/index.js';
import { renderJunit } from '../../report/junit/index.js';
import { renderIdentification } from '../../report/text/attribution/index.js';
import { gatherSketch, renderAudit, type AuditSketch } from '../../report/text/index.js';
import { rejectClashes } from '../options/given-options.js';
import type { CommandContext } from '../options/command-rows.js';
import { declaredFormats, kernelSettings, problemSettings } from '../options/settings.js';
import { parsePositive, parseProbability } from '../options/parse-values.js';
import { createStagedProgress, terminalLooks } from '../terminal.js';
import { toolVersion } from '../tool-version.js';
import {
  emulateOutputs,
  emulationCommand,
  executeKernel,
  outputArguments,
  readOutputs,
  type JudgedOutputs,
} from './judged-outputs.js';
import { auditOptions, type AuditCommandOptions } from './options.js';

/** Exit statuses of an audit. */
const passed = 0;
const failed = 1;

/** The options that name a file to write a report to. */
const reportFiles = ['json', 'junit', 'html'] as const;

/** The stages of an audit, and how long they take beside each other; last what has no progress. */
function auditStages({ identify }: AuditCommandOptions): readonly (readonly [string, number])[] {
  return [
    ['oracle', 2],
    ['structure', 5],
    ['bounds', 4],
    ...(identify === true ? [['identification', 12] as const] : []),
    ['report', 1],
  ];
}

/** The tensors of the problem's file that are judged. */
function usedTensors(
  sources: JudgedOutputs['sources'] | null,
  { path }: TensorFile,
): readonly string[] {
  return Object.values(sources ?? {}).flatMap((source) =>
    source?.path === path ? [source.tensor] : [],
  );
}

async function writeReport(target: string | undefined, text: () => string): Promise<void> {
  if (target === undefined) return;
  if (target === '-') process.stdout.write(text());
  else await atomicWriteFile(target, text());
}

/** What goes with a report: the HTML of --html, and what only the text has. */
interface Extras {
  readonly page: string | null;
  readonly identification: Identification | null;
  readonly sketch: AuditSketch | null;
}

/**
 * Prints a report and writes the files that were asked for. The text comes first: a file that cannot be
 * written must not lose what was found.
 */
async function publish(
  report: AuditReport,
  { page, identification, sketch }: Extras,
  options: AuditCommandOptions,
): Promise<void> {
  await validateReport(report);
  if (reportFiles.every((name) => options[name] !== '-')) {
    const looks = terminalLooks(process.stdout);
    const identified =
      identification === null ? '' : `\n${renderIdentification(identification, looks.columns)}\n`;
    process.stdout.write(
      options.quiet === true
        ? `${report.verdict.sentence}\n`
        : renderAudit(report, { ...looks, full: options.full === true, sketch }) + identified,
    );
  }
  await writeReport(options.json, () => `${JSON.stringify(report, null, 2)}\n`);
  await writeReport(options.junit, () => renderJunit([report]));
  if (page !== null) await writeReport(options.html, () => page);
}

/** @throws RequestError for options that do not go together */
function rejectOptions(options: AuditCommandOptions, { models }: CommandContext): void {
  const { kernel, as } = options;
  rejectClashes(auditOptions, options, {
    set: () => kernel !== undefined || (as !== undefined && isModel(as, models)),
  });
}

/** The model of which techniques are measured: the kernel's own; a declared one for the page of plots. */
function measuredModel(
  { kernel, html, set }: AuditCommandOptions,
  declared: ArithmeticRequest,
): MeasuredModel | null {
  const name = kernel ?? (html === undefined ? undefined : declaredModel(declared));
  return name === undefined
    ? null
    : { model: modelNamed(name, declared.models), settings: kernelSettings(set) };
}

/**
 * Runs `flashproof audit`: reads the problem, gets the outputs from files or from a live kernel,
 * judges them, prints and writes the report. Returns the exit status.
 * @throws RequestError for a request that cannot be carried out
 */
export async function runAudit(
  path: string,
  options: AuditCommandOptions,
  context: CommandContext = {},
): Promise<number> {
  rejectOptions(options, context);
  const settings = problemSettings(options);
  const timeoutSeconds = parsePositive(options.timeout, '--timeout');
  const falseAlarmRate = parseProbability(options.falseAlarmRate, '--false-alarm-rate');
  const start = performance.now();
  const progress = createStagedProgress('audit', auditStages(options));
  const html =
    options.html === undefined
      ? null
      : (await import('./html-page.js')).createHtmlAudit(path, options, context);
  const formats = declaredFormats(options);
  const file = await openTensorFile(path, { formats });
  try {
    const problem = await readProblem(file, settings);
    const { models } = context;
    const { kernel, exec, as, premise, set } = options;
    const arithmetic: ArithmeticRequest = {
      kernel,
      as,
      premise,
      noted: problemNote(file, 'premises'),
      settings: () => kernelSettings(set),
      models,
    };
    const declared = declaredArithmetic(problem, arithmetic);
    const origin = async (
      sources: JudgedOutputs['sources'] | null,
    ): Promise<Omit<Provenance, 'seconds'>> => ({
      version: toolVersion(),
      problem: { path, sha256: await hashTensorFile(path) },
      outputs: sources ?? {},
      command: kernel === undefined ? (exec ?? null) : emulationCommand(kernel, set),
      unused: unusedInputs(file, usedTensors(sources, file)),
    });
    const reading = { formats, headsFirst: problemLayout(file, settings) === 'bhsd' };
    let judged: JudgedOutputs;
    if (kernel !== undefined) judged = await emulateOutputs(kernel, problem, options, models);
    else if (exec === undefined)
      judged = await readOutputs(file, outputArguments(options), reading);
    else {
      const execution = await executeKernel(exec, problem, timeoutSeconds);
      if (!execution.ok) {
        const report = createExecutionFailureReport(
          problem,
          `the kernel's process ${execution.reason}; replay with the problem ${path}`,
          { ...(await origin(null)), seconds: secondsSince(start) },
        );
        const page = (await html?.render(report, null, [], null)) ?? null;
        await publish(report, { page, identification: null, sketch: null }, options);
        return failed;
      }
      judged = execution.outputs;
    }
    const result = auditKernel(
      {
        problem,
        outputs: judged.outputs,
        declared,
        falseAlarmRate,
        techniques: options.techniques,
        measured: measuredModel(options, arithmetic),
        identify: options.identify === true,
        models,
        origin: await origin(judged.sources),
        start,
      },
      {
        progress: progress.update,
        ...(html === null ? {} : { onElements: html.onElements }),
      },
    );
    progress.done();
    const { report, reference, identification } = result;
    const wantsSketch = terminalLooks(process.stdout).sparklines && options.full === true;
    const sketch = wantsSketch ? gatherSketch({ reference, outputs: result.audit.outputs }) : null;
    const compared = await html?.compare(problem, file, {
      output: { tensor: judged.outputs.out, source: judged.sources.out },
      reading,
      falseAlarmRate,
      provenance: result.origin,
    });
    const identified = identification === null ? null : renderIdentification(identification);
    const page = (await html?.render(report, problem, compared ?? [], identified)) ?? null;
    await publish(report, { page, identification, sketch }, options);
    return report.verdict.pass ? passed : failed;
  } finally {
    progress.done();
    await file.close();
  }
}
