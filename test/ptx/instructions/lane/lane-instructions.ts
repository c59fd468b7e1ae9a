import { laneRows, type LaneInstruction } from '../../../../src/isa/index.js';
import { addressRows } from '../../../../src/ptx/instructions/lane.js';

/** Every lane instruction. Those that share a name differ in the number of operands, or in the width of a result. */
export function laneInstructions(): readonly LaneInstruction[] {
  return [...laneRows, ...addressRows].flatMap(({ variants }) => variants());
}
