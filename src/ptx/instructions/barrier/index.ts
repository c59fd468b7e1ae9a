import type { VisibleInstruction } from '../visible-instruction.js';
import { clusterInstructions } from './clusters.js';
import { mbarrierInstructions } from './mbarriers.js';
import { namedBarrierInstructions } from './named-barriers.js';

/** Barriers of warps, CTAs and clusters, and mbarriers. */
export const barrierInstructions: readonly VisibleInstruction[] = [
  ...namedBarrierInstructions,
  ...mbarrierInstructions,
  ...clusterInstructions,
];
