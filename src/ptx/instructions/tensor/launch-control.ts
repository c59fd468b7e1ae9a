import { slotsOf, uniformNumber, wrongOperands } from '../operands.js';
import type { ResolvedOperand } from '../request.js';
import { ownOffset, sharedAddresses } from '../shared-addresses.js';
import type { VisibleInstruction } from '../visible-instruction.js';
import { hasLane } from '../warp-registers.js';

/** Registers of a warp, and launches that depend on one another. */
export const launchControlRows: readonly VisibleInstruction[] = [
  {
    name: 'setmaxnreg',
    meaning: 'none',
    evidence: 'isa',
    source: 'PTX ISA, Miscellaneous Instructions: setmaxnreg',
    lower: ({ modifiers, operands, site }) => {
      const [count] = operands;
      const action = (['inc', 'dec'] as const).find((one) => modifiers.includes(one));
      if (count === undefined || action === undefined)
        return wrongOperands('.inc or .dec, and a number of registers');
      return {
        isAligned: true,
        writes: [],
        reads: slotsOf(operands),
        lends: [],
        issue: function* (warp) {
          yield { op: 'setmaxnreg', action, registers: uniformNumber(warp, count), site };
        },
      };
    },
  },
  {
    name: 'clusterlaunchcontrol.try_cancel.async',
    meaning: 'decides',
    evidence: 'isa',
    source:
      'PTX ISA, Parallel Synchronization and Communication Instructions: clusterlaunchcontrol.try_cancel',
    lower: (request) => {
      const { modifiers, operands, site } = request;
      const [answer, barrier] = operands;
      if (answer?.kind !== 'address' || barrier?.kind !== 'address')
        return wrongOperands('[answer], [mbarrier]');
      return {
        isAligned: false,
        writes: [],
        reads: slotsOf(operands),
        lends: [],
        issue: function* (warp) {
          for (let lane = 0; lane < 32; lane++) {
            if (!hasLane(warp.lanes, lane)) continue;
            const alone = { ...warp, lanes: (1 << lane) >>> 0 };
            const offsetOf = (operand: ResolvedOperand) =>
              ownOffset(warp, sharedAddresses(alone, request, operand)[0].address);
            yield {
              op: 'clusterlaunchcontrol.try_cancel',
              destination: offsetOf(answer),
              barrier: offsetOf(barrier),
              isMulticast: modifiers.includes('multicast::cluster::all'),
              site,
            };
          }
        },
      };
    },
  },
  {
    // A launch has nothing to wait for here: earlier launches have ended.
    name: 'griddepcontrol',
    meaning: 'none',
    evidence: 'isa',
    source: 'PTX ISA, Parallel Synchronization and Communication Instructions: griddepcontrol',
    lower: () => ({ isAligned: false, writes: [], reads: [], lends: [], issue: function* () {} }),
  },
];
