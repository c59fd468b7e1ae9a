import type { InstructionRequest, Unsupported } from '../request.js';
import type { WarpInstruction, WarpOperation } from '../warp-instruction.js';
import { lowestLane } from '../warp-registers.js';
import { slotsOf, wrongOperands } from '../operands.js';
import { destinationsOf, groupOperation, lanesOf, readerOf, writerOf } from './operands.js';

/** The result of each lane of a group, from the lanes of the group and those of them whose predicate is true. */
const votes: Readonly<Record<string, (members: number, yes: number) => number>> = {
  all: (members, yes) => (yes === members ? 1 : 0),
  any: (_members, yes) => (yes !== 0 ? 1 : 0),
  uni: (members, yes) => (yes === 0 || yes === members ? 1 : 0),
  ballot: (_members, yes) => yes,
};

function lowerVote({ modifiers, operands }: InstructionRequest): WarpOperation | Unsupported {
  const vote = votes[modifiers[1]];
  const type = modifiers[1] === 'ballot' ? 'b32' : 'pred';
  if (vote === undefined || modifiers[2] !== type)
    return { unsupported: 'votes other than all, any and uni of pred and ballot of b32' };
  const [write, read, readMask] = [
    writerOf(operands[0]),
    readerOf(operands[1]),
    readerOf(operands[2]),
  ];
  if (!write || !read || !readMask) return wrongOperands('d, a, membermask');
  return groupOperation(
    operands,
    { maskOperand: 2, readMask, meaning: 'decides' },
    (registers, members) => {
      const yes = lanesOf(members).reduce(
        (mask, lane) => (read(registers, lane) !== 0 ? (mask | (1 << lane)) >>> 0 : mask),
        0,
      );
      const result = vote(members, yes);
      for (const lane of lanesOf(members)) write(registers, lane, result);
    },
  );
}

function lowerElect({ modifiers, operands }: InstructionRequest): WarpOperation | Unsupported {
  const [leader, isLeader] = destinationsOf(operands[0]);
  const [writeLeader, writeIsLeader, readMask] = [
    writerOf(leader),
    writerOf(isLeader),
    readerOf(operands[1]),
  ];
  if (modifiers.length > 1 || !writeLeader || !writeIsLeader || !readMask)
    return wrongOperands('d|p, membermask');
  return groupOperation(
    operands,
    { maskOperand: 1, readMask, meaning: 'decides' },
    (registers, members) => {
      const elected = lowestLane(members);
      for (const lane of lanesOf(members)) {
        writeLeader(registers, lane, elected);
        writeIsLeader(registers, lane, lane === elected ? 1 : 0);
      }
    },
  );
}

function lowerActivemask({ modifiers, operands }: InstructionRequest): WarpOperation | Unsupported {
  const write = writerOf(operands[0]);
  if (modifiers[0] !== 'b32' || !write) return wrongOperands('d of b32');
  return {
    converged: 'none',
    meaning: 'decides',
    writes: slotsOf(operands),
    reads: [],
    execute: (registers, lanes) => {
      for (const lane of lanesOf(lanes)) write(registers, lane, lanes >>> 0);
      return null;
    },
  };
}

/** `vote.sync`, `elect.sync`, which takes the lowest lane (any is allowed), and `activemask`. */
export const voteInstructions: readonly WarpInstruction[] = [
  {
    name: 'vote.sync',
    meaning: 'decides',
    evidence: 'isa',
    source: 'PTX ISA, Parallel Synchronization and Communication Instructions: vote.sync',
    lower: lowerVote,
  },
  {
    name: 'elect.sync',
    meaning: 'decides',
    evidence: 'isa',
    source: 'PTX ISA, Parallel Synchronization and Communication Instructions: elect.sync',
    lower: lowerElect,
  },
  {
    name: 'activemask',
    meaning: 'decides',
    evidence: 'isa',
    source: 'PTX ISA, Parallel Synchronization and Communication Instructions: activemask',
    lower: lowerActivemask,
  },
];
