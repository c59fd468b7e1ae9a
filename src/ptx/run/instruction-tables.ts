import { findLaneInstruction } from '../instructions/index.js';
import type { InstructionTables } from '../program/index.js';

/** Every instruction that runs. */
export const ptxInstructions: InstructionTables = {
  lane: findLaneInstruction,
  warp: [],
  visible: [],
};
