import type { FaultyBackward } from './fault.js';
import { faultsOfRows } from './faulty-rows.js';
import { faultsOfSums } from './faulty-sums.js';
import { publishedBackwards } from './published-backwards.js';

/**
 * Plain backward kernels with a fault each: those of public threads that change what one run gives, and those that are planted. Not
 * among them are faults of one run against another (Dao-AILab/flash-attention #2549 and #2244, orders that should be one), and of
 * the sink's gradient (NVIDIA/TransformerEngine #3249), which these kernels do not give.
 */
export const faultyBackwards: readonly FaultyBackward[] = [
  ...publishedBackwards,
  ...faultsOfRows,
  ...faultsOfSums,
];
