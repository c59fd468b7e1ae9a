import type { VisibleInstruction } from '../visible-instruction.js';
import { launchControlRows } from './launch-control.js';
import { tensorCopyRows } from './tensor-copies.js';
import { tensorMapRows } from './tensor-maps.js';
import { tensorMemoryRows } from './tensor-memory.js';
import { tensorProductRows } from './tensor-products.js';
import { wgmmaInstructions } from './wgmma.js';

/** Tensor cores, tensor memory and TMA. */
export const tensorInstructions: readonly VisibleInstruction[] = [
  ...tensorCopyRows,
  ...tensorMapRows,
  ...tensorMemoryRows,
  ...tensorProductRows,
  ...wgmmaInstructions,
  ...launchControlRows,
];
