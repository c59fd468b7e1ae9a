import { type LaneInstruction, laneInstructions } from '../../../src/ptx/instructions/index.js';

/** Rows of lane instructions to compile. */
export const knownRows: readonly LaneInstruction[] = laneInstructions();
