import { availableParallelism } from 'node:os';
import { writeRawTensors } from '../../io/index.js';
import {
  type ExploredLaunch,
  exploreLaunchFile,
  judgeMutants,
  judgeRun,
  type MutantResults,
  runDocument,
  runLaunchFile,
  runOnThreads,
  type RunResult,
} from '../../jobs/index.js';
import { fitLines } from '../../report/layout/index.js';
import {
  renderExploration,
  renderLines,
  renderMutants,
  renderRun,
} from '../../report/text/launch/index.js';
import { writeJson } from '../files/publish.js';
import { rejectClashes } from '../options/given-options.js';
import { createPeriodicProgress, terminalLooks } from '../terminal.js';
import { toolVersion } from '../tool-version.js';
import { parseBreakpoints } from './breakpoints.js';
import { type RunCommandOptions, runOptions } from './options.js';
import { createLaunchTrace } from './trace-file.js';

/** Exit statuses. */
const [nothingWrong, somethingWrong] = [0, 1];

/** The results of the mutants, if they are asked for. */
async function resultsOfMutants(
  result: RunResult,
  { mutants, mostMutants: most, threads = availableParallelism() }: RunCommandOptions,
): Promise<MutantResults | null> {
  if (mutants !== true) return null;
  const progress = createPeriodicProgress('mutants');
  return judgeMutants(result, { most, threads }, progress.update).finally(progress.done);
}

/** The results of the schedules, if they are asked for. */
async function resultsOfSchedules(
  { request }: RunResult,
  { schedules }: RunCommandOptions,
): Promise<ExploredLaunch | null> {
  if (schedules === undefined) return null;
  const progress = createPeriodicProgress('schedules');
  return exploreLaunchFile(request, schedules, progress.update).finally(progress.done);
}

/** Writes a text, its lines wrapped to the width of the terminal. */
function printFitted(text: string): void {
  const { columns } = terminalLooks(process.stdout);
  process.stdout.write(fitLines(text.split('\n'), columns).join('\n'));
}

/**
 * Runs `flashproof run`: a compiled kernel on the emulated machine; saves and prints. Returns the exit status.
 *
 * @throws RequestError for a request that cannot be carried out
 */
export async function runRun(path: string, options: RunCommandOptions): Promise<number> {
  const { save, trace, json, quiet, lines, hints = false, contract = false, races } = options;
  const { ptx, tensors, problem, schedule, starts, model, architecture } = options;
  const { threads, mutants: withMutants = false } = options;
  rejectClashes(runOptions, options);
  const breaks = parseBreakpoints(options.break ?? [], options.breakTimes);
  const progress = createPeriodicProgress('run');
  const tracer = trace === undefined ? null : createLaunchTrace();
  const settings = { contract, races, schedule, starts, model, architecture };
  const request = { path, ptx, tensors, problem, breaks, ...settings };
  const result = await runLaunchFile(request, progress.update, tracer, (launch) =>
    runOnThreads(request, launch, withMutants ? 1 : (threads ?? 1)),
  ).finally(progress.done);
  const version = toolVersion();
  const isPrinted = json !== '-' && quiet !== true;
  // Before anything is printed: what other schedules come to is part of the verdict.
  const explored = await resultsOfSchedules(result, options);
  const verdict = judgeRun(result, explored);
  if (isPrinted) {
    printFitted(renderRun(result, verdict, hints));
    if (lines === true) process.stdout.write(`\n${renderLines(result)}`);
  }
  if (isPrinted && explored !== null) printFitted(`\n${renderExploration(explored)}`);
  const mutants = await resultsOfMutants(result, options);
  if (isPrinted && mutants !== null) printFitted(`\n${renderMutants(mutants)}`);
  // Last: a file that cannot be written must not lose what was found.
  if (save !== undefined) await writeRawTensors(save, result.outputs, { flashproof: version });
  if (tracer !== null && trace !== undefined) {
    const written = await tracer.write(trace);
    if (isPrinted) printFitted(`\n${written}\n`);
  }
  if (json !== undefined)
    await writeJson(json, {
      ...runDocument(version, result, explored),
      exploration: explored,
      mutants,
    });
  const isOverlooked = mutants?.judged.some((mutant) => mutant.isOverlooked) === true;
  return verdict.pass && !isOverlooked ? nothingWrong : somethingWrong;
}
