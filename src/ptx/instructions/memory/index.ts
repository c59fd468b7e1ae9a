import type { VisibleInstruction } from '../visible-instruction.js';
import { atomicRows } from './atomics.js';
import { bulkCopyRows } from './bulk-copies.js';
import { cachePolicyRows } from './cache-policies.js';
import { fenceRows } from './fences.js';
import { laneCopyRows } from './lane-copies.js';
import { transferRows } from './loads-and-stores.js';
import { remoteStoreRows } from './remote-stores.js';
import { matrixRows } from './matrices.js';

/** Loads, stores, atomics, copies and fences: instructions on memory that others see. */
export const memoryInstructions: readonly VisibleInstruction[] = [
  ...transferRows,
  ...atomicRows,
  ...cachePolicyRows,
  ...laneCopyRows,
  ...bulkCopyRows,
  ...remoteStoreRows,
  ...matrixRows,
  ...fenceRows,
];
