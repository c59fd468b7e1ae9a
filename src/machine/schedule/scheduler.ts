import {
  type AsynchronousOperation,
  type MachineState,
  report,
  type Step,
  type WarpState,
} from '../state.js';
import { recordOf } from '../instructions/index.js';
import { type Fragment, type Instruction, siteOf } from '../isa/index.js';

/** The choice of the next step of a run. */
export interface Scheduler {
  /** Name of the schedule in findings and reports; it tells how to reproduce it. */
  readonly name: string;
  /** Whether the steps' times are computed: only the timed schedule needs them. */
  readonly isTimed?: boolean;
  /**
   * The index of one of the steps that may come next: warps in the order of CTAs and warps, then
   * operations in the order of their issue. There is at least one.
   */
  readonly choose: (steps: readonly Step[]) => number;
}

/**
 * The oldest operation that may be performed, else the warp that went last, else the first warp that
 * may go on.
 *
 * @param isHeldBack steps that come only when no other step may
 */
export function inOrderChoice(
  steps: readonly Step[],
  last: Step | null,
  isHeldBack: (step: Step) => boolean = () => false,
): number {
  let firstWarp = -1;
  let lastWarp = -1;
  let operation = -1;
  steps.forEach((step, i) => {
    if (isHeldBack(step)) return;
    if (step.chosenAs === 'operation') {
      if (operation === -1) operation = i;
    } else {
      if (firstWarp === -1) firstWarp = i;
      if (step === last) lastWarp = i;
    }
  });
  if (operation !== -1) return operation;
  return lastWarp !== -1 ? lastWarp : Math.max(firstWarp, 0);
}

/**
 * Every operation completes as soon as it may; else the warps take turns, each going on until it has to
 * wait. The schedule with the fewest changes of warp.
 */
export function inOrderScheduler(): Scheduler {
  let last: Step | null = null;
  return {
    name: 'in order',
    choose: (steps) => {
      const choice = inOrderChoice(steps, last);
      last = steps[choice];
      return choice;
    },
  };
}

/** The next step by the clocks of the units: an estimate of how the kernel runs. */
export function timedScheduler(): Scheduler {
  return {
    name: 'timed',
    isTimed: true,
    choose: (steps) => {
      let best = 0;
      for (let i = 1; i < steps.length; i++) if (steps[i].time < steps[best].time) best = i;
      return best;
    },
  };
}

/** A scheduler with a record of its choices and of the numbers of steps to choose from. */
interface RecordingScheduler extends Scheduler {
  readonly choices: readonly { readonly chosen: number; readonly among: number }[];
}

/** Records the choices of another scheduler. */
export function recordingScheduler(scheduler: Scheduler): RecordingScheduler {
  const choices: { chosen: number; among: number }[] = [];
  return {
    ...scheduler,
    choices,
    choose: (steps) => {
      const chosen = scheduler.choose(steps);
      choices.push({ chosen, among: steps.length });
      return chosen;
    },
  };
}

/** Whether a warp may go on: with its next instruction, or in the middle of one. */
export function isReady(machine: MachineState, warp: WarpState): boolean {
  const { current, continuation } = warp;
  if (current === null) return false;
  if (continuation !== null) return continuation.isReady();
  for (const { isDone } of neededLoads(warp, current)) if (!isDone) return false;
  return recordOf(current).ready.isReady(machine, warp, current as never);
}

/** The clock from which on a warp that is ready may go on. */
export function readyTime(machine: MachineState, warp: WarpState): number {
  const { current, continuation, readyAt } = warp;
  if (current === null) return readyAt;
  if (continuation !== null) return Math.max(readyAt, continuation.readyTime());
  const { ready } = recordOf(current);
  let time = Math.max(readyAt, ready.readyTime(machine, warp, current as never));
  for (const { doneAt } of neededLoads(warp, current)) time = Math.max(time, doneAt);
  return time;
}

/** The reason that a warp is not ready, for a message about a deadlock. */
export function waitsFor(machine: MachineState, warp: WarpState): string {
  const { current, continuation } = warp;
  if (current === null) return 'nothing';
  if (continuation !== null) return continuation.waitsFor();
  if (neededLoads(warp, current).some(({ isDone }) => !isDone)) return 'registers being loaded';
  return recordOf(current).ready.waitsFor(machine, warp, current as never);
}

/** Whether two fragments are parts of one buffer. */
function isOfOneBuffer(one: Fragment, other: Fragment): boolean {
  return one.bytes.buffer === other.bytes.buffer;
}

/** Whether two fragments have registers in common; they may be parts of one buffer. */
function overlap({ bytes: one }: Fragment, { bytes: other }: Fragment): boolean {
  return (
    one.buffer === other.buffer &&
    one.byteOffset < other.byteOffset + other.byteLength &&
    other.byteOffset < one.byteOffset + one.byteLength
  );
}

/**
 * A warp's tcgen05.ld under way that fill registers which the instruction reads or writes. Fragments of one
 * buffer are waited for together, but loads into different parts of it do not depend on one another.
 */
export function neededLoads(
  { loads }: WarpState,
  instruction: Instruction,
): readonly AsynchronousOperation[] {
  if (loads.length === 0) return [];
  const { reads, writes, unit } = recordOf(instruction);
  const read = reads.registers(instruction as never);
  const written = writes.registers(instruction as never);
  if (read.length === 0 && written.length === 0) return [];
  const isLoad = unit.operation !== null;
  // The tensor core executes wgmma in order, so that a chain of them needs no waits.
  const isWgmma = instruction.op === 'wgmma.mma_async';
  return loads.filter(({ kind, fragments }) => {
    if (isWgmma && kind === 'wgmma') return false;
    for (const loaded of fragments) {
      for (const one of read) if (isOfOneBuffer(one, loaded)) return true;
      for (const one of written)
        if (isLoad ? overlap(one, loaded) : isOfOneBuffer(one, loaded)) return true;
    }
    return false;
  });
}

/**
 * The instruction executes now, with registers that these loads have filled: where the hardware keeps
 * track of registers, this tells the warp that the loads are complete; where the memory model
 * requires tcgen05.wait::ld, the use is reported.
 */
export function useLoads(
  machine: MachineState,
  warp: WarpState,
  loads: readonly AsynchronousOperation[],
): void {
  if (loads.length === 0) return;
  const { tracker, model, step } = machine;
  if (model.registerDependencies) {
    for (const { kind, order } of loads) if (order !== null) tracker?.finish(warp, kind, order);
    warp.loads = warp.loads.filter((load) => !loads.includes(load));
  } else if (tracker !== null)
    for (const { name, kind, site } of loads)
      report(
        machine,
        warp,
        'race',
        `registers of ${name} (${site}) are used before ${kind === 'wgmma' ? 'wgmma.wait_group' : 'tcgen05.wait::ld'}`,
        [
          { who: `${name} of ${warp.name}`, site, step },
          { who: warp.name, site: siteOf(warp.current), step },
        ],
      );
}
