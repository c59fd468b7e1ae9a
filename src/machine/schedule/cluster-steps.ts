import { leaveBarriers, noMemory, recordOf, touchMemory } from '../instructions/index.js';
import type { Instruction } from '../isa/index.js';
import { count } from '../measure/index.js';
import type { AsynchronousOperation, MachineState, Step, WarpState } from '../state.js';
import { createPollingDetector } from './polling.js';
import { reportUnfinished } from './report-end.js';
import { isReady, neededLoads, readyTime, useLoads } from './scheduler.js';
import { createTimeBooks, type TimeBooks } from './time-books.js';

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

/** The steps of a cluster: those that may come next, and what each of them does. */
export class ClusterSteps {
  readonly books: TimeBooks;
  readonly warps: readonly WarpState[];
  readonly #machine: MachineState;
  readonly #isTimed: boolean;
  readonly #polling = createPollingDetector();
  readonly #next: Step[] = [];

  /** The steps of a machine, whose warps get their first instructions. */
  constructor(machine: MachineState, isTimed: boolean) {
    this.#machine = machine;
    this.#isTimed = isTimed;
    this.books = createTimeBooks(machine, isTimed);
    this.warps = machine.ctas.flatMap((cta) => cta.warps);
    this.warps.forEach(advance);
    for (const warp of this.warps) if (warp.current === null) this.#end(warp);
  }

  /** Those that may come next, warps first; until the next call. */
  next(): readonly Step[] {
    collectSteps(this.#machine, this.warps, this.#isTimed, this.#next);
    return this.#next;
  }

  /** Takes a step; returns whether it was more than polling. */
  take(step: Step): boolean {
    const machine = this.#machine;
    machine.now = this.#isTimed ? step.time : machine.step;
    let isMore = true;
    if (step.chosenAs === 'warp') {
      const instruction = step.current!;
      this.#execute(step);
      isMore = !this.#polling.isPoll(step, instruction);
    } else this.#perform(step);
    machine.step++;
    return isMore;
  }

  #execute(warp: WarpState): void {
    const { current, readyAt } = warp;
    if (!executeInstruction(this.#machine, warp)) return;
    this.books.warpDone(warp, current!, readyAt);
    advance(warp);
    if (warp.current === null) this.#end(warp);
  }

  #perform(operation: AsynchronousOperation): void {
    const { pending } = this.#machine;
    pending.splice(pending.indexOf(operation), 1);
    for (const part of [operation, ...operation.partners]) {
      part.isDone = true;
      part.after = [];
      part.doneAt = this.#machine.now;
      part.perform();
      this.books.operationDone(part);
    }
    operation.partners = [];
  }

  #end(warp: WarpState): void {
    if (warp.cta.warps.includes(warp)) leaveBarriers(this.#machine, warp);
    reportUnfinished(this.#machine);
  }
}
