import type { FaultyBackward } from './fault.js';
import { faultsOfRows } from './faulty-rows.js';
import { faultsOfSums } from './faulty-sums.js';
import { publishedBackwards } from './published-backwards.js';
import { sharedFaults } from './shared-faults.js';

/**
 * Plain backward kernels with a fault each: those of public threads that change what one run gives, and those that are planted. Not
 * among them are faults of one run against another (Dao-AILab/flash-attention #2549 and #2244, orders that should be one).
 */
export const faultyBackwards: readonly FaultyBackward[] = [
  ...publishedBackwards,
  ...faultsOfRows,
  ...faultsOfSums,
  ...sharedFaults,
];
