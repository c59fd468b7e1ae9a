import { availableParallelism } from 'node:os';
import { atomicWriteFile, writeRawTensors } from '../../io/index.js';
import {
  exploreLaunchFile,
  judgeMutants,
  judgeRun,
  runDocument,
  runLaunchFile,
  runOnThreads,
  type ExploredLaunch,
  type LaunchTracer,
  type MutantResults,
  type RunRequest,
  type RunResult,
} from '../../jobs/index.js';
import {
  chromeTraceHead,
  chromeTraceTail,
  createChromeTraceSection,
  type ChromeTraceSection,
} from '../../machine/index.js';
import { fitLines } from '../../report/layout/index.js';
import {
  renderExploration,
  renderLines,
  renderMutants,
  renderRun,
  renderThreads,
} from '../../report/text/launch/index.js';
import { RequestError } from '../../request-error.js';
import { parseWhole } from '../../words/index.js';
import { writeJson } from '../files/publish.js';
import { rejectClashes } from '../options/given-options.js';
import { createPeriodicProgress, terminalLooks } from '../terminal.js';
import { toolVersion } from '../tool-version.js';
import { runOptions, type RunCommandOptions } from './options.js';

/** Events that a trace has at most, which take some 300 MB: viewers open no larger ones. */
const mostEvents = 2 ** 20;

/** A run's trace, kept until it is written. */
interface LaunchTrace extends LaunchTracer {
  /**
   * Writes the file, in Chrome's trace format: a CTA is a process, its warps and units are threads.
   *
   * @returns a description of its contents, for a reader
   * @throws RequestError when it cannot be written
   */
  readonly write: (path: string) => Promise<string>;
}

/**
 * A trace without events yet.
 *
 * @param most events that are kept: those after them are counted only
 */
function createLaunchTrace(most = mostEvents): LaunchTrace {
  let head: Uint8Array | null = null;
  let about: Parameters<LaunchTracer['begin']>[0] = { ctas: 1, isTimed: false, schedule: '' };
  const chunks: Uint8Array[] = [];
  let current: { readonly cluster: number; readonly section: ChromeTraceSection } | null = null;
  let [events, clusters] = [0, 0];

  function flush(): void {
    if (current === null) return;
    for (const chunk of current.section.chunks()) chunks.push(chunk);
    current = null;
  }
  function sectionOf(cluster: number): ChromeTraceSection {
    if (current?.cluster === cluster) return current.section;
    flush();
    clusters++;
    const { ctas, isTimed } = about;
    const warpName = (warp: number) => `warp ${warp}`;
    const section = createChromeTraceSection({ cluster, ctas, warpName, isTimed });
    current = { cluster, section };
    return section;
  }

  return {
    begin: (given) => {
      about = given;
      head = chromeTraceHead({ tool: 'flashproof', schedule: about.schedule }, about.isTimed);
    },
    add: (cluster, event) => {
      if (events++ < most) sectionOf(cluster).add(event);
    },
    write: async (path) => {
      flush();
      await atomicWriteFile(path, [...(head === null ? [] : [head]), ...chunks, chromeTraceTail()]);
      const unit = clusters === 1 ? '1 cluster' : `${clusters.toLocaleString('en-US')} clusters`;
      const kept =
        events <= most
          ? ''
          : `; it holds the first ${most.toLocaleString('en-US')} of ${events.toLocaleString('en-US')} events`;
      return `trace of ${unit} in ${path} (open it at https://ui.perfetto.dev)${kept}`;
    },
  };
}

type Breakpoint = NonNullable<RunRequest['breaks']>[number];

const warpLanes = 32;

/** `17`, `17,40`, `17,w1`, each with `,3` for another CTA. */
const pattern = /^\s*(\d{1,9})\s*(?:,\s*(w?)(\d{1,4})\s*)?(?:,\s*(\d{1,10})\s*)?$/;

/** The breakpoint that a text names. @throws RequestError for another text */
function parseBreakpoint(text: string, times: number): Breakpoint {
  const match = pattern.exec(text);
  if (match === null)
    throw new RequestError(
      `--break is ${JSON.stringify(text)}; give <line>, <line>,<thread> or <line>,w<warp>, and ,<CTA> after it`,
    );
  const [, line, ofWarp, place = '0', cta = '0'] = match as readonly (string | undefined)[];
  const isThread = match[3] !== undefined && ofWarp === '';
  const number = Number(place);
  return {
    line: Number(line),
    cta: Number(cta),
    warp: isThread ? Math.floor(number / warpLanes) : number,
    lane: isThread ? number % warpLanes : null,
    times,
  };
}

/** The breakpoints of --break. @throws RequestError for a text that names none */
function parseBreakpoints(texts: readonly string[], times: string): readonly Breakpoint[] {
  const most = parseWhole(times, '--break-times', 1);
  return texts.map((text) => parseBreakpoint(text, most));
}

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
  const {
    save,
    trace,
    json,
    quiet,
    lines,
    stats,
    hints = false,
    contract = false,
    races,
  } = options;
  const { ptx, tensors, problem, schedule, starts, model, architecture } = options;
  const { threads, mutants: withMutants = false } = options;
  rejectClashes(runOptions, options);
  const breaks = parseBreakpoints(options.break ?? [], options.breakTimes);
  const progress = createPeriodicProgress('run');
  const tracer = trace === undefined ? null : createLaunchTrace();
  const settings = { contract, races, schedule, starts, model, architecture };
  const request = { path, ptx, tensors, problem, breaks, ...settings };
  const result = await runLaunchFile(request, progress.update, { events: tracer }, (plain) =>
    runOnThreads(request, plain, withMutants ? 1 : threads),
  ).finally(progress.done);
  const version = toolVersion();
  const isPrinted = json !== '-' && quiet !== true;
  // Before anything is printed: what other schedules come to is part of the verdict.
  const explored = await resultsOfSchedules(result, options);
  const verdict = judgeRun(result, explored);
  if (quiet === true && json !== '-') process.stdout.write(`${verdict.sentence}\n`);
  if (isPrinted) {
    printFitted(renderRun(result, verdict, hints));
    if (stats === true) printFitted(`\n${renderThreads(result)}`);
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
