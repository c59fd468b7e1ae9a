import type { InstructionOf, Opcode } from '../isa/index.js';
import type { AsynchronousOperation, WarpState } from '../state.js';
import {
  movesNothing,
  noDetails,
  type InstructionDetails,
  type InstructionRecord,
} from './record.js';

/** What a wait for a warp's asynchronous operations is about. */
interface AwaitedOperations<Op extends Opcode> {
  /** The operations that the warp waits for. */
  readonly operations: (
    warp: WarpState,
    instruction: InstructionOf<Op>,
  ) => readonly AsynchronousOperation[];
  /** What a message calls several of them, as `bulk stores`. */
  readonly name: string;
  /** Takes them from those of the warp that it does not know to be complete. */
  readonly forget: (
    warp: WarpState,
    instruction: InstructionOf<Op>,
    done: readonly AsynchronousOperation[],
  ) => void;
  /** What a trace shows of the wait's operands; nothing where it is left out. */
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

/** How many of the oldest of a warp's groups have to be complete when at most so many may be pending. */
export function groupsToAwait(groups: readonly unknown[], pending: number): number {
  return Math.max(groups.length - pending, 0);
}
