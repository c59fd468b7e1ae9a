import type { InstructionOf, Opcode } from '../isa/index.js';
import type { AsynchronousOperation, WarpState } from '../state.js';
import {
  movesNothing,
  noDetails,
  type InstructionDetails,
  type InstructionRecord,
} from './record.js';

/** Description of a wait for a warp's asynchronous operations. */
interface AwaitedOperations<Op extends Opcode> {
  readonly operations: (
    warp: WarpState,
    instruction: InstructionOf<Op>,
  ) => readonly AsynchronousOperation[];
  /** The name of several of them in a message, as `bulk stores`. */
  readonly name: string;
  /** Takes them from the operations of the warp that it does not know to be complete. */
  readonly forget: (
    warp: WarpState,
    instruction: InstructionOf<Op>,
    done: readonly AsynchronousOperation[],
  ) => void;
  /** The wait's operands for a trace; nothing where it is left out. */
  readonly describe?: (instruction: InstructionOf<Op>) => InstructionDetails;
}

/** The record of a wait for asynchronous operations of the warp: when it goes on, it knows them to be complete. */
export function waitForOperations<Op extends Opcode>({
  operations,
  name,
  forget,
  describe = noDetails,
}: AwaitedOperations<Op>): InstructionRecord<Op> {
  return {
    ...movesNothing,
    ready: {
      isReady: (_machine, warp, instruction) =>
        operations(warp, instruction).every(({ isDone }) => isDone),
      waitsFor: (_machine, warp, instruction) =>
        `${operations(warp, instruction).filter(({ isDone }) => !isDone).length} ${name}`,
      readyTime: (_machine, warp, instruction) =>
        Math.max(0, ...operations(warp, instruction).map(({ doneAt }) => doneAt)),
    },
    isWait: true,
    describe,
    execute: ({ tracker }, warp, instruction) => {
      const done = operations(warp, instruction);
      for (const { kind, order } of done) if (order !== null) tracker?.finish(warp, kind, order);
      forget(warp, instruction, done);
    },
  };
}

/** Number of a warp's oldest groups that have to be complete when at most `pending` may be pending. */
export function groupsToAwait(groups: readonly unknown[], pending: number): number {
  return Math.max(groups.length - pending, 0);
}
