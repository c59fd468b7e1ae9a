import { slotsOf, wrongOperands } from '../operands.js';
import type { VisibleInstruction } from '../visible-instruction.js';
import { hasLane } from '../warp-registers.js';

/** `createpolicy`. Its result is opaque and only a hint: here it is always 0, for any operands. */
export const cachePolicyRows: readonly VisibleInstruction[] = [
  {
    name: 'createpolicy',
    meaning: 'loses',
    evidence: 'isa',
    source: 'PTX ISA, "createpolicy"',
    lower: ({ operands }) => {
      const [destination, ...sources] = operands;
      if (destination?.kind !== 'register' || destination.slot.width !== 64)
        return wrongOperands('a register of 64 bits, and what the policy is made of');
      return {
        isAligned: false,
        writes: [destination.slot],
        reads: slotsOf(sources),
        lends: [],
        issue: function* ({ registers, lanes }) {
          const words = registers.words(destination.slot);
          for (let lane = 0; lane < 32; lane++)
            if (hasLane(lanes, lane)) words.fill(0, 2 * lane, 2 * lane + 2);
        },
      };
    },
  },
];
