import type { LaneInstruction } from '../../../src/ptx/instructions/index.js';
import { machineRows } from './machine-rows.js';

/** Rows of lane instructions to compile. */
export const knownRows: readonly LaneInstruction[] = machineRows;
