import { registersOf, uniformNumber, wrongOperands } from '../barrier/operands.js';
import type { VisibleInstruction } from '../visible-instruction.js';

/** Registers of a warp, and launches that depend on one another. */
export const launchControlRows: readonly VisibleInstruction[] = [
  {
    name: 'setmaxnreg',
    evidence: 'isa',
    source: 'PTX ISA, Miscellaneous Instructions: setmaxnreg',
    lower: ({ operands, site }) => {
      const [count] = operands;
      if (count === undefined) return wrongOperands('a number of registers');
      return {
        isAligned: true,
        writes: [],
        reads: registersOf(operands),
        lends: [],
        issue: function* (warp) {
          yield { op: 'setmaxnreg', registers: uniformNumber(warp, count), site };
        },
      };
    },
  },
  {
    // A launch has nothing to wait for here: what came before it has ended.
    name: 'griddepcontrol',
    evidence: 'isa',
    source: 'PTX ISA, Parallel Synchronization and Communication Instructions: griddepcontrol',
    lower: () => ({ isAligned: false, writes: [], reads: [], lends: [], issue: function* () {} }),
  },
];
