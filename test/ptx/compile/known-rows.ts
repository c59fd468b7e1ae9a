import type { LaneInstruction } from '../../../src/ptx/instructions/index.js';
import { laneInstructions } from '../instructions/lane/lane-instructions.js';

/** Rows of lane instructions to compile. */
export const knownRows: readonly LaneInstruction[] = laneInstructions();
