import type { VisibleInstruction } from '../visible-instruction.js';
import { atomicRows } from './atomics.js';
import { fenceRows } from './fences.js';
import { laneCopyRows } from './lane-copies.js';
import { transferRows } from './loads-and-stores.js';
import { matrixRows } from './matrices.js';

/** Loads, stores, atomics, copies and fences: instructions on memory that others see. */
export const memoryInstructions: readonly VisibleInstruction[] = [
  ...transferRows,
  ...atomicRows,
  ...laneCopyRows,
  ...matrixRows,
  ...fenceRows,
];
