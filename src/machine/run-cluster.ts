import type { ClusterLaunch, RunOptions } from './cluster-launch.js';
import { count, type CtaCounters } from './counters.js';
import { createMachine } from './create-machine.js';
import { reportEnd, reportUnfinished } from './end-of-run.js';
import type { Finding } from './finding.js';
import { definitionOf, isReady, readyTime } from './readiness.js';
import { neededLoads, useLoads } from './register-loads.js';
import { inOrderScheduler } from './schedulers/index.js';
import type { AsynchronousOperation, MachineState, Step, WarpState } from './state.js';
import { createTimeBooks } from './time-books.js';

/** What came of a run. */
export interface ClusterRun {
  readonly findings: readonly Finding[];
  /** Of each CTA. */
  readonly counters: readonly CtaCounters[];
  readonly steps: number;
  /** Clocks from the beginning to the end in a timed schedule. */
  readonly clocks: number;
  /** Whether all warps came to their end. */
  readonly isComplete: boolean;
}

/** The warp's next instruction becomes current. */
function advance(warp: WarpState): void {
  const next = warp.program.next();
  warp.current = next.done === true ? null : next.value;
}

/** Executes a warp's current instruction, or goes on with it; whether it is done. */
function executeInstruction(machine: MachineState, warp: WarpState): boolean {
  const instruction = warp.current!;
  if (warp.continuation === null) {
    useLoads(machine, warp, neededLoads(warp, instruction));
    if (instruction.op !== 'registers') count(warp.cta.counters.instructions, instruction.op, 1);
    const result = definitionOf(instruction).execute(machine, warp, instruction as never);
    if (result === undefined) return true;
    warp.continuation = result;
    if (!result.isReady()) return false;
  }
  warp.continuation.resume();
  warp.continuation = null;
  return true;
}

/** Everything that may happen next, warps first: `steps` is filled with it. */
function collectSteps(
  machine: MachineState,
  warps: readonly WarpState[],
  isTimed: boolean,
  steps: Step[],
): void {
  steps.length = 0;
  for (const warp of warps)
    if (isReady(machine, warp)) {
      if (isTimed) warp.time = readyTime(machine, warp);
      steps.push(warp);
    }
  for (const operation of machine.pending)
    if (operation.after.every(({ isDone }) => isDone)) steps.push(operation);
}

/**
 * Runs the warps of a cluster to their end, in the order that the scheduler chooses among what may come
 * next. Illegal acts are findings; they do not end the run, but what they concern may be left out of
 * it. The same launch with the same scheduler gives the same run.
 *
 * Memory: that of the CTAs, and what the tracker of orders needs for them.
 */
export function runCluster(launch: ClusterLaunch, options: RunOptions = {}): ClusterRun {
  const machine = createMachine(launch, options);
  const { scheduler = inOrderScheduler(), mostSteps = 1e8 } = options;
  const isTimed = scheduler.isTimed === true;
  const { ctas, pending, findings } = machine;
  const books = createTimeBooks(machine, isTimed);
  const warps = ctas.flatMap((cta) => cta.warps);
  warps.forEach(advance);
  const steps: Step[] = [];
  let isGivenUp = false;

  function executeWarp(warp: WarpState): void {
    const { current, readyAt } = warp;
    if (!executeInstruction(machine, warp)) return;
    books.warpDone(warp, current!, readyAt);
    advance(warp);
    if (warp.current === null) reportUnfinished(machine);
  }

  function perform(operation: AsynchronousOperation): void {
    pending.splice(pending.indexOf(operation), 1);
    operation.isDone = true;
    operation.doneAt = machine.now;
    operation.perform();
    books.operationDone(operation);
  }

  for (;;) {
    collectSteps(machine, warps, isTimed, steps);
    if (steps.length === 0) break;
    if (machine.step >= mostSteps) {
      findings.add({
        kind: 'deadlock',
        cta: 0,
        step: machine.step,
        message: `no end after ${mostSteps} steps`,
      });
      isGivenUp = true;
      break;
    }
    const step = steps[scheduler.choose(steps)];
    machine.now = isTimed ? step.time : machine.step;
    if (step.chosenAs === 'warp') executeWarp(step);
    else perform(step);
    machine.step++;
  }
  const isComplete = !isGivenUp && reportEnd(machine);
  if (isComplete) machine.tracker?.end(machine);
  return {
    findings: findings.list(),
    counters: ctas.map(({ counters }) => counters),
    steps: machine.step,
    clocks: books.end(),
    isComplete,
  };
}
