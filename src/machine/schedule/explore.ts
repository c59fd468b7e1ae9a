import { RequestError } from '../../request-error.js';
import { type Finding, findingWeight } from '../ordering/index.js';
import { recordingScheduler, type Scheduler } from './scheduler.js';
import { delayingScheduler } from './searching-schedulers.js';

/** Result of a run under one schedule. */
export interface ExploredRun {
  readonly findings: readonly Finding[];
  /** Represents everything that a schedule must not change: a hash of the outputs, or the outputs. */
  readonly result: string;
}

/**
 * Runs the subject of the exploration once, from its beginning, with memory of its own, under a schedule
 * that it gives to the machine. The same schedule has to give the same run.
 */
export type RunUnder = (scheduler: Scheduler) => ExploredRun;

/** A result of runs, and the first run that had it. */
export interface Outcome<Value> {
  readonly value: Value;
  /** Number of runs that had it. */
  readonly runs: number;
  /** The first of them, counted from 1, and the name of its schedule, which tells how to reproduce it. */
  readonly firstRun: number;
  readonly schedule: string;
}

/** Results of an exploration. */
export interface Exploration {
  readonly runs: number;
  /** Whether all requested schedules have been run. */
  readonly isExhausted: boolean;
  /** Number of decisions of the first run, and of those with more than one possible next step. */
  readonly decisions: number;
  readonly choices: number;
  /** The different results, in the order in which they were seen. */
  readonly results: readonly Outcome<string>[];
  /** The different findings: those with the same kind and message are one. */
  readonly findings: readonly Outcome<Finding>[];
  /** The first run that has a finding that is more than a hint, or another result than the first run; null if there is none. */
  readonly firstDifference: { readonly run: number; readonly schedule: string } | null;
}

/** Limits of an exploration. */
export interface ExploreOptions {
  /** The most steps that a schedule holds back. */
  readonly delays: number;
  /** Runs after which the exploration stops; default 100,000. */
  readonly mostRuns?: number;
  /** Whether it stops at the first difference; default false. */
  readonly stopsAtDifference?: boolean;
}

interface Observed<Value> {
  value: Value;
  runs: number;
  firstRun: number;
  schedule: string;
}

function observe<Value>(
  seen: Map<string, Observed<Value>>,
  key: string,
  value: Value,
  firstRun: number,
  schedule: string,
): void {
  const known = seen.get(key);
  if (known === undefined) seen.set(key, { value, runs: 1, firstRun, schedule });
  else known.runs++;
}

/** Keeps the books of an exploration. */
function createLog() {
  const results = new Map<string, Observed<string>>();
  const findings = new Map<string, Observed<Finding>>();
  let runs = 0;
  let firstDifference: Exploration['firstDifference'] = null;
  let [decisions, choices] = [0, 0];
  return {
    get runs() {
      return runs;
    },
    get hasDifference() {
      return firstDifference !== null;
    },
    /** Runs under a schedule; returns the numbers of the decisions with a choice. */
    run: (runUnder: RunUnder, scheduler: Scheduler): number[] => {
      const recording = recordingScheduler(scheduler);
      const { findings: found, result } = runUnder(recording);
      runs++;
      const { name } = scheduler;
      observe(results, result, result, runs, name);
      // A run counts a finding once, however often it has it.
      for (const [key, finding] of new Map(
        found.map((one) => [`${one.kind}\n${one.message}`, one] as const),
      ))
        observe(findings, key, finding, runs, name);
      const isWrong = found.some(({ kind }) => findingWeight(kind) !== 'hint');
      if (firstDifference === null && (isWrong || results.size > 1))
        firstDifference = { run: runs, schedule: name };
      const open = recording.choices.flatMap(({ among }, i) => (among > 1 ? [i] : []));
      if (runs === 1) [decisions, choices] = [recording.choices.length, open.length];
      return open;
    },
    report: (isExhausted: boolean): Exploration => ({
      runs,
      isExhausted,
      decisions,
      choices,
      firstDifference,
      results: [...results.values()],
      findings: [...findings.values()],
    }),
  };
}

/**
 * Runs every schedule with at most `delays` delays: the schedule in order, in which at one, two, … of its
 * decisions the next step is held back until nothing else may go on (delayingScheduler). Fewer delays
 * come first, and among equally many, earlier ones. A delay at a decision that has no alternative changes
 * nothing and is left out.
 *
 * Meaning of the bound: the schedules within it are polynomially many, of degree `delays` in the length
 * of the run, while all schedules are exponentially many; a fault that needs k things to be late one by
 * one is within the bound k. Most need one or two. Schedules beyond it have not been tried.
 *
 * Purpose: a run of the machine whose accesses are followed and that has no finding is a proof for all
 * schedules (the theorem in ordering/barrier-history.ts), so that one run is enough. Exploration does not
 * use the theorem. With `races: false` it compares results alone, and so confirms the theorem, and the
 * machine that is to obey it, from outside; and for a known fault it finds a schedule that shows it in
 * the result.
 *
 * Memory: the list of decisions of every run with fewer delays than the bound.
 *
 * @throws RequestError for a bound or a number of runs that is no whole number in range
 */
export function explore(runUnder: RunUnder, options: ExploreOptions): Exploration {
  const { delays: bound, mostRuns = 100_000, stopsAtDifference = false } = options;
  if (!(Number.isInteger(bound) && bound >= 0))
    throw new RequestError(`schedules with ${bound} delays cannot be explored; pass 0, 1, 2, …`);
  if (!(Number.isInteger(mostRuns) && mostRuns >= 1))
    throw new RequestError(`an exploration of ${mostRuns} runs cannot be made; pass 1 or more`);
  const log = createLog();
  const isOver = (): boolean => log.runs >= mostRuns || (stopsAtDifference && log.hasDifference);
  const first = log.run(runUnder, delayingScheduler([]));
  let level: { readonly delays: readonly number[]; readonly open: readonly number[] }[] = [
    { delays: [], open: first },
  ];
  for (let count = 1; count <= bound; count++) {
    const next: typeof level = [];
    for (const { delays, open } of level) {
      // The run is the same up to its last delay; another one there holds back one more step.
      const from = delays.at(-1) ?? 0;
      for (const decision of open) {
        if (decision < from) continue;
        if (isOver()) return log.report(false);
        const more = [...delays, decision];
        const opened = log.run(runUnder, delayingScheduler(more));
        if (count < bound) next.push({ delays: more, open: opened });
      }
    }
    level = next;
  }
  return log.report(true);
}
