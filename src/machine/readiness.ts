import type { InstructionDefinition } from './execute/definition.js';
import type { Instruction, Opcode } from './instruction.js';
import { instructionDefinitions } from './instructions.js';
import { neededLoads } from './register-loads.js';
import type { MachineState, WarpState } from './state.js';

/** What the machine knows of an instruction, whichever it is. */
export function definitionOf({ op }: Instruction): InstructionDefinition<Opcode> {
  return instructionDefinitions[op] as InstructionDefinition<Opcode>;
}

/** Whether a warp may go on: with its next instruction, or in the middle of one. */
export function isReady(machine: MachineState, warp: WarpState): boolean {
  const { current, continuation } = warp;
  if (current === null) return false;
  if (continuation !== null) return continuation.isReady();
  for (const { isDone } of neededLoads(warp, current)) if (!isDone) return false;
  return definitionOf(current).isReady?.(machine, warp, current as never) ?? true;
}

/** The clock from which on a warp that is ready may go on. */
export function readyTime(machine: MachineState, warp: WarpState): number {
  const { current, continuation, readyAt } = warp;
  if (current === null) return readyAt;
  if (continuation !== null) return Math.max(readyAt, continuation.readyTime());
  let time = Math.max(
    readyAt,
    definitionOf(current).readyTime?.(machine, warp, current as never) ?? 0,
  );
  for (const { doneAt } of neededLoads(warp, current)) time = Math.max(time, doneAt);
  return time;
}

/** What keeps a warp that is not ready, for a message about a deadlock. */
export function waitsFor(machine: MachineState, warp: WarpState): string {
  const { current, continuation } = warp;
  if (current === null) return 'nothing';
  if (continuation !== null) return continuation.waitsFor();
  if (neededLoads(warp, current).some(({ isDone }) => !isDone)) return 'registers being loaded';
  return definitionOf(current).waitsFor?.(machine, warp, current as never) ?? 'nothing';
}
