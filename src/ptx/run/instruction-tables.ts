import type { Architecture } from '../../hardware/index.js';
import {
  barrierInstructions,
  findLaneInstruction,
  memoryInstructions,
  tensorInstructions,
  warpInstructions,
} from '../instructions/index.js';
import type { InstructionTables } from '../program/index.js';

/** Every instruction that can run, with the arithmetic of a GPU's tensor cores. */
export function ptxInstructions(architecture: Architecture): InstructionTables {
  return {
    lane: findLaneInstruction,
    warp: warpInstructions(architecture),
    visible: [...memoryInstructions, ...barrierInstructions, ...tensorInstructions],
  };
}
