import { renderIdentification } from '../../report/text/attribution/index.js';
import type { Identification } from '../../attribution/index.js';
import type { KernelOutputs } from '../../audit/index.js';
import {
  atomicWriteFile,
  hashTensorFile,
  openTensorFile,
  problemNote,
  readProblem,
  unusedInputs,
  type TensorFile,
} from '../../io/index.js';
import type { Problem } from '../../problem/index.js';
import {
  type AuditReport,
  createAuditReport,
  createExecutionFailureReport,
  type Provenance,
  type TensorSource,
  validateReport,
} from '../../report/json/index.js';
import { type AuditSketch, renderAudit } from '../../report/text/index.js';
import { renderJunit } from '../../report/junit/index.js';
import { RequestError } from '../../request-error.js';
import { rejectClashes } from '../options/clashes.js';
import { parsePositive, parseProbability } from '../options/parse-values.js';
import { auditOptions, type AuditCommandOptions } from './options.js';
import { declaredArithmetic, isModel } from '../declared-arithmetic.js';
import { emulateKernel, emulationCommand } from '../emulate-kernel.js';
import { executeKernel } from './execute-kernel.js';
import { judge } from '../judge.js';
import { declaredFormats, problemSettings } from '../options/problem-settings.js';
import { readTensorArgument } from '../files/tensor-argument.js';
import { createStagedProgress } from '../terminal/progress.js';
import { terminalLooks } from '../terminal/terminal-looks.js';
import { toolVersion } from '../tool-version.js';

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

/** Outputs to judge, and where they came from. */
interface Judged {
  readonly outputs: KernelOutputs;
  readonly output: TensorSource;
  readonly lse: TensorSource | null;
}

/** The outputs that --output and --lse name, or the problem file's own `out` and `lse`. */
async function readOutputs(file: TensorFile, options: AuditCommandOptions): Promise<Judged> {
  if (options.output === undefined && !file.entries.has('out'))
    throw new RequestError(
      `${file.path}: has no tensor "out" to judge; name the kernel's output with --output <file>[:tensor], or run the kernel with --exec`,
    );
  const lseArgument =
    options.lse ?? (options.output === undefined && file.entries.has('lse') ? ':lse' : null);
  const out = await readTensorArgument(options.output ?? ':out', file, 'out', options);
  const lse =
    lseArgument === null ? null : await readTensorArgument(lseArgument, file, 'lse', options);
  return {
    outputs: { out: out.tensor, lse: lse?.tensor ?? null },
    output: out.source,
    lse: lse?.source ?? null,
  };
}

/** The tensors of the problem's file that are judged. */
function usedTensors(
  judged: Pick<Judged, 'output' | 'lse'> | null,
  { path }: TensorFile,
): readonly string[] {
  return [judged?.output, judged?.lse].flatMap((source) =>
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
function rejectOptions(options: AuditCommandOptions): void {
  const { kernel, as } = options;
  rejectClashes(auditOptions, options, {
    set: () => kernel !== undefined || (as !== undefined && isModel(as)),
  });
}

/**
 * Runs `flashproof audit`: reads the problem, gets the outputs from files or from a live kernel,
 * judges them, prints and writes the report. Returns the exit status.
 * @throws RequestError for a request that cannot be carried out
 */
export async function runAudit(path: string, options: AuditCommandOptions): Promise<number> {
  rejectOptions(options);
  const settings = problemSettings(options);
  const timeoutSeconds = parsePositive(options.timeout, '--timeout');
  const falseAlarmRate = parseProbability(options.falseAlarmRate, '--false-alarm-rate');
  const start = performance.now();
  const progress = createStagedProgress('audit', auditStages(options));
  const html =
    options.html === undefined
      ? null
      : (await import('./html-page.js')).createHtmlAudit(path, options);
  const file = await openTensorFile(path, { formats: declaredFormats(options) });
  try {
    const problem: Problem = await readProblem(file, settings);
    const declared = declaredArithmetic(problem, options, problemNote(file, 'premises'));
    const provenance = async (
      judged: Pick<Judged, 'output' | 'lse'> | null,
    ): Promise<Provenance> => ({
      version: toolVersion(),
      problem: { path, sha256: await hashTensorFile(path) },
      outputs: judged === null ? {} : { out: judged.output, lse: judged.lse },
      command:
        options.kernel === undefined
          ? (options.exec ?? null)
          : emulationCommand(options.kernel, options.set),
      unused: unusedInputs(file, usedTensors(judged, file)),
      seconds: (performance.now() - start) / 1000,
    });
    let judged: Judged;
    if (options.kernel !== undefined)
      judged = await emulateKernel(options.kernel, problem, options);
    else if (options.exec === undefined) judged = await readOutputs(file, options);
    else {
      const execution = await executeKernel(options.exec, problem, timeoutSeconds);
      if (!execution.ok) {
        const report = createExecutionFailureReport(
          problem,
          `the kernel's process ${execution.reason}; replay with the problem ${path}`,
          await provenance(null),
        );
        const page = (await html?.render(report, null, [], null)) ?? null;
        await publish(report, { page, identification: null, sketch: null }, options);
        return failed;
      }
      judged = execution.outputs;
    }
    const { audit, techniques, identification, sketch } = judge(problem, judged.outputs, options, {
      declared,
      falseAlarmRate,
      progress: progress.update,
      sketch: terminalLooks(process.stdout).sparklines && options.full === true,
      ...(html === null ? {} : { onElements: html.onElements }),
    });
    progress.done();
    const origin = await provenance(judged);
    const report = createAuditReport(problem, audit, origin, techniques);
    const compared = await html?.compare(problem, file, {
      output: { tensor: judged.outputs.out, source: judged.output },
      falseAlarmRate,
      provenance: origin,
    });
    const identified = identification === null ? null : renderIdentification(identification);
    const page = (await html?.render(report, problem, compared ?? [], identified)) ?? null;
    await publish(report, { page, identification, sketch }, options);
    return audit.verdict.pass ? passed : failed;
  } finally {
    progress.done();
    await file.close();
  }
}
