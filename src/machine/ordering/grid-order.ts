import { createAccessTable, type AccessTable } from './accesses.js';
import { createChains, type Chains } from './clock.js';
import { createGlobalShadow, type GlobalShadow } from './global-shadow.js';
import { createSynchronisation, type Synchronisation } from './synchronisation.js';

/**
 * What the clusters of one grid have in common, as far as order goes: global memory, and what is released there. The
 * clusters may run one after another: none knows what another has done, unless it acquires what that has released.
 * Memory and time grow with the warps of the grid.
 */
export interface GridOrder {
  readonly chains: Chains;
  readonly accesses: AccessTable;
  readonly shadow: GlobalShadow;
  readonly released: Synchronisation;
  /** CTAs that have begun: the number of the next one. */
  ctas: number;
}

/** The order of a grid of which nothing has run. */
export function createGridOrder(): GridOrder {
  const accesses = createAccessTable();
  return {
    accesses,
    chains: createChains(),
    shadow: createGlobalShadow(accesses),
    released: createSynchronisation(),
    ctas: 0,
  };
}
