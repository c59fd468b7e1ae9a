import {
  leaveBarriers,
  noMemory,
  recordOf,
  reportApart,
  touchMemory,
} from '../instructions/index.js';
import { type Instruction, siteOf } from '../isa/index.js';
import { count, type CtaCounters } from '../measure/index.js';
import {
  type AsynchronousOperation,
  type MachineState,
  type Step,
  type WarpState,
} from '../state.js';
import { type Finding, findingWeight, type ScheduleDependence } from '../ordering/index.js';
import { type ClusterLaunch, createMachine, type RunOptions } from './create-machine.js';
import { createPollingDetector } from './polling.js';
import { reportEnd, reportUnfinished } from './report-end.js';
import { inOrderScheduler, isReady, neededLoads, readyTime, useLoads } from './scheduler.js';
import { createTimeBooks } from './time-books.js';

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

/** The warp's next instruction becomes current. */
function advance(warp: WarpState): void {
  const next = warp.program.next();
  warp.current = next.done === true ? null : next.value;
}

/** Tells the tracker of the memory that an instruction has read and written. */
function touchAtOnce(machine: MachineState, warp: WarpState, instruction: Instruction): void {
  const record = recordOf(instruction);
  if (record.reads.memory === noMemory && record.writes.memory === noMemory) return;
  touchMemory(machine, { warp, order: null }, record, instruction as never, warp.cta);
}

/** Executes a warp's current instruction, or goes on with it; returns whether it is done. */
function executeInstruction(machine: MachineState, warp: WarpState): boolean {
  const instruction = warp.current!;
  if (warp.continuation === null) {
    useLoads(machine, warp, neededLoads(warp, instruction));
    if (instruction.op !== 'registers') count(warp.cta.counters.instructions, instruction.op, 1);
    const record = recordOf(instruction);
    const result = record.execute(machine, warp, instruction as never);
    if (result === 'refused') return true;
    if (result === undefined) {
      // The memory accesses of an issued operation take place when it is performed.
      if (record.unit.operation === null) touchAtOnce(machine, warp, instruction);
      return true;
    }
    warp.continuation = result;
  }
  while (warp.continuation?.isReady() === true)
    warp.continuation = warp.continuation.resume() ?? null;
  return warp.continuation === null;
}

/** Fills `steps` with every step that may happen next, warps first. */
function collectSteps(
  machine: MachineState,
  warps: readonly WarpState[],
  isTimed: boolean,
  steps: Step[],
): void {
  steps.length = 0;
  const add = (warp: WarpState): void => {
    if (!isReady(machine, warp)) return;
    if (isTimed) warp.time = readyTime(machine, warp);
    steps.push(warp);
  };
  warps.forEach(add);
  machine.strands.forEach(add);
  for (const operation of machine.pending)
    if (operation.after.every(({ isDone }) => isDone)) steps.push(operation);
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
  const isTimed = scheduler.isTimed === true;
  const { ctas, pending, findings } = machine;
  const books = createTimeBooks(machine, isTimed);
  const warps = ctas.flatMap((cta) => cta.warps);
  const polling = createPollingDetector();
  const steps: Step[] = [];
  let [hasEnded, isGivenUp] = [false, false];

  function end(warp: WarpState): void {
    if (warp.cta.warps.includes(warp)) leaveBarriers(machine, warp);
    reportUnfinished(machine);
  }

  function executeWarp(warp: WarpState): void {
    const { current, readyAt } = warp;
    if (!executeInstruction(machine, warp)) return;
    books.warpDone(warp, current!, readyAt);
    advance(warp);
    if (warp.current === null) end(warp);
  }

  function perform(operation: AsynchronousOperation): void {
    pending.splice(pending.indexOf(operation), 1);
    for (const part of [operation, ...operation.partners]) {
      part.isDone = true;
      part.after = [];
      part.doneAt = machine.now;
      part.perform();
      books.operationDone(part);
    }
    operation.partners = [];
  }

  function giveUp(reason: string): void {
    const { step } = machine;
    const accesses = [...warps, ...machine.strands]
      .filter(({ current }) => current !== null)
      .map(({ name, current }) => ({ who: name, site: siteOf(current), step }));
    const waits = accesses.map(({ who, site }) => `${who} is at "${site}"`);
    const message = [reason, ...waits].join('; ');
    findings.add({ kind: 'deadlock', cta: 0, step, message, accesses });
    [hasEnded, isGivenUp] = [true, true];
  }

  /**
   * Takes a step; returns whether it was more than polling. Null where nothing may come next: the cluster has
   * ended.
   */
  function takeStep(): boolean | null {
    collectSteps(machine, warps, isTimed, steps);
    if (steps.length === 0) {
      hasEnded = true;
      return null;
    }
    if (machine.step >= mostSteps) {
      giveUp(`no end after ${mostSteps} steps`);
      return null;
    }
    const step = steps[scheduler.choose(steps)];
    machine.now = isTimed ? step.time : machine.step;
    let isMore = true;
    if (step.chosenAs === 'warp') {
      const instruction = step.current!;
      executeWarp(step);
      isMore = !polling.isPoll(step, instruction);
    } else perform(step);
    machine.step++;
    return isMore;
  }

  warps.forEach(advance);
  for (const warp of warps) if (warp.current === null) end(warp);
  return {
    giveUp,
    canTake: (isThis) => {
      if (hasEnded) return false;
      collectSteps(machine, warps, isTimed, steps);
      return steps.some(isThis);
    },
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
    result: () => {
      const isComplete = !isGivenUp && reportEnd(machine);
      if (isComplete) {
        reportApart(machine);
        machine.tracker?.end(machine);
      }
      if (findings.list().some(({ kind }) => findingWeight(kind) === 'illegal'))
        machine.tracker?.tellRepeatedWaits(machine);
      const dependences = machine.tracker?.dependences() ?? [];
      return {
        dependences,
        areCommitsFenced: machine.tracker?.areCommitsFenced() ?? false,
        findings: findings.list(),
        counters: ctas.map(({ counters }) => counters),
        steps: machine.step,
        clocks: books.end(),
        isComplete,
        speaksForAllSchedules:
          isComplete &&
          machine.tracker !== null &&
          dependences.length === 0 &&
          findings.list().every(({ kind }) => findingWeight(kind) === 'hint'),
      };
    },
  };
}

/** Runs the warps of a cluster to their end, as `startCluster` says. */
export function runCluster(launch: ClusterLaunch, options: RunOptions = {}): ClusterRun {
  const cluster = startCluster(launch, options);
  while (!cluster.goOn(Infinity).hasEnded);
  return cluster.result();
}
