import type { VisibleInstruction } from '../visible-instruction.js';
import { wgmmaInstructions } from './wgmma.js';

/** Tensor cores and the copies that feed them. */
export const tensorInstructions: readonly VisibleInstruction[] = [...wgmmaInstructions];
