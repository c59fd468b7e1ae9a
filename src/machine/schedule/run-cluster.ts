import { reportApart } from '../instructions/index.js';
import { siteOf } from '../isa/index.js';
import type { CtaCounters } from '../measure/index.js';
import { type Finding, findingWeight, type ScheduleDependence } from '../ordering/index.js';
import type { MachineState, Step, WarpState } from '../state.js';
import { ClusterSteps } from './cluster-steps.js';
import { type ClusterLaunch, createMachine, type RunOptions } from './create-machine.js';
import { reportEnd } from './report-end.js';
import { inOrderScheduler } from './scheduler.js';
import type { TimeBooks } from './time-books.js';

/** Result of a run. */
export interface ClusterRun {
  readonly findings: readonly Finding[];
  readonly counters: readonly CtaCounters[];
  readonly steps: number;
  /** Clocks from the beginning to the end in a timed schedule. */
  readonly clocks: number;
  /** Whether all warps came to their end. */
  readonly isComplete: boolean;
  /**
   * Whether every schedule has the same order, values and end (docs/reference/machine.md): the run is complete, races were looked
   * for, nothing was found but hints, and no strong accesses came in no order.
   */
  readonly speaksForAllSchedules: boolean;
  /** Strong accesses in no order, in this cluster and with those of its grid before it. */
  readonly dependences: readonly ScheduleDependence[];
  /**
   * Whether each tcgen05.commit came after a fence for the initialisation of its mbarrier; false where order is not followed.
   */
  readonly areCommitsFenced: boolean;
}

/** A cluster that runs piece by piece. */
export interface RunningCluster {
  /**
   * Goes on for at most `steps` steps, or until all warps that may go on do nothing but poll.
   *
   * @returns whether it has ended; whether it has done more than poll; and the steps that it took
   */
  readonly goOn: (steps: number) => {
    readonly hasEnded: boolean;
    readonly hasProgressed: boolean;
    readonly steps: number;
  };
  /** Whether one of the steps that may come next is this. */
  readonly canTake: (isThis: (step: Step) => boolean) => boolean;
  /** Ends it where it is, with a finding. */
  readonly giveUp: (reason: string) => void;
  /** Its result, once it has ended. */
  readonly result: () => ClusterRun;
}

/** Reports that a cluster is given up where it is: with its warps and lanes that have not ended. */
function reportGivenUp(
  { step, findings, strands }: MachineState,
  warps: readonly WarpState[],
  reason: string,
): void {
  const accesses = [...warps, ...strands]
    .filter(({ current }) => current !== null)
    .map(({ name, current }) => ({ who: name, site: siteOf(current), step }));
  const waits = accesses.map(({ who, site }) => `${who} is at "${site}"`);
  const message = [reason, ...waits].join('; ');
  findings.add({ kind: 'deadlock', cta: 0, step, message, accesses });
}

/** The result of a cluster that has ended, or has been given up; reports what its end shows. */
function resultOf(machine: MachineState, isGivenUp: boolean, books: TimeBooks): ClusterRun {
  const { ctas, findings, tracker } = machine;
  const isComplete = !isGivenUp && reportEnd(machine);
  if (isComplete) {
    reportApart(machine);
    tracker?.end(machine);
  }
  if (findings.list().some(({ kind }) => findingWeight(kind) === 'illegal'))
    tracker?.tellRepeatedWaits(machine);
  const dependences = tracker?.dependences() ?? [];
  return {
    dependences,
    areCommitsFenced: tracker?.areCommitsFenced() ?? false,
    findings: findings.list(),
    counters: ctas.map(({ counters }) => counters),
    steps: machine.step,
    clocks: books.end(),
    isComplete,
    speaksForAllSchedules:
      isComplete &&
      tracker !== null &&
      dependences.length === 0 &&
      findings.list().every(({ kind }) => findingWeight(kind) === 'hint'),
  };
}

/**
 * A cluster before its first step. The scheduler chooses each next step. Illegal acts are findings; they do not end the
 * run, but the affected operations may be left out of it. The same launch with the same scheduler gives the same run.
 *
 * Memory: that of the CTAs, and that of the order tracker for them.
 */
export function startCluster(launch: ClusterLaunch, options: RunOptions = {}): RunningCluster {
  const machine = createMachine(launch, options);
  const { scheduler = inOrderScheduler(), mostSteps = 1e8, pollsPerWarp = 1024 } = options;
  const { onStep = () => undefined } = options;
  const steps = new ClusterSteps(machine, scheduler.isTimed === true);
  const { warps, books } = steps;
  let [hasEnded, isGivenUp] = [false, false];

  function giveUp(reason: string): void {
    reportGivenUp(machine, warps, reason);
    [hasEnded, isGivenUp] = [true, true];
  }

  /**
   * Takes a step; returns whether it was more than polling. Null where nothing may come next: the cluster has
   * ended.
   */
  function takeStep(): boolean | null {
    const next = steps.next();
    if (next.length === 0) {
      hasEnded = true;
      return null;
    }
    if (machine.step >= mostSteps) {
      giveUp(`no end after ${mostSteps} steps`);
      return null;
    }
    return steps.take(next[scheduler.choose(next)]);
  }

  return {
    giveUp,
    canTake: (isThis) => !hasEnded && steps.next().some(isThis),
    goOn: (most) => {
      const first = machine.step;
      let [polls, hasProgressed] = [0, false];
      const isPolling = () => polls >= pollsPerWarp * (warps.length + machine.strands.length + 1);
      while (!hasEnded && machine.step - first < most && !isPolling()) {
        const isMore = takeStep();
        if (isMore !== null) onStep(isMore);
        polls = isMore === false ? polls + 1 : 0;
        hasProgressed ||= isMore !== false;
      }
      return { hasEnded, hasProgressed, steps: machine.step - first };
    },
    result: () => resultOf(machine, isGivenUp, books),
  };
}

/** Runs the warps of a cluster to their end, as `startCluster` says. */
export function runCluster(launch: ClusterLaunch, options: RunOptions = {}): ClusterRun {
  const cluster = startCluster(launch, options);
  while (!cluster.goOn(Infinity).hasEnded);
  return cluster.result();
}
