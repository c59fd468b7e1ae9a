import { recordOf } from '../instructions/index.js';
import { siteOf, type Fragment, type Instruction } from '../isa/index.js';
import { report, type AsynchronousOperation, type MachineState, type WarpState } from '../state.js';

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

/** What keeps a warp that is not ready, for a message about a deadlock. */
export function waitsFor(machine: MachineState, warp: WarpState): string {
  const { current, continuation } = warp;
  if (current === null) return 'nothing';
  if (continuation !== null) return continuation.waitsFor();
  if (neededLoads(warp, current).some(({ isDone }) => !isDone)) return 'registers being loaded';
  return recordOf(current).ready.waitsFor(machine, warp, current as never);
}

/** Whether two fragments have registers in common; they may be parts of one buffer. */
function overlap(one: Fragment, other: Fragment): boolean {
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
  return loads.filter(({ fragment: loaded }) => {
    for (const one of read) if (one.buffer === loaded!.buffer) return true;
    for (const one of written)
      if (isLoad ? overlap(one, loaded!) : one.buffer === loaded!.buffer) return true;
    return false;
  });
}

/**
 * The instruction executes now, with registers that these loads have filled: where the hardware keeps
 * track of registers, the warp knows from it that the loads are complete; where the memory model asks
 * for tcgen05.wait::ld, its use is reported.
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
    for (const { name, site } of loads)
      report(
        machine,
        warp,
        'race',
        `registers of ${name} (${site}) are used before tcgen05.wait::ld`,
        [
          { who: `${name} of ${warp.name}`, site, step },
          { who: warp.name, site: siteOf(warp.current), step },
        ],
      );
}
