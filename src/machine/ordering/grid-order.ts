import { createChains, type Chains } from './clock.js';
import { createGlobalShadow, type GlobalFootprint, type GlobalShadow } from './global-shadow.js';
import { type MemoryModel, memoryModels } from './memory-model.js';
import {
  createScheduleDependences,
  type DependenceListener,
  type ScheduleDependences,
} from './schedule-dependences.js';
import { createSynchronisation, type Synchronisation } from './synchronisation.js';

/**
 * What the clusters of one grid have in common, as far as order goes: global memory, and what is released there. The
 * clusters may run one after another: none knows what another has done, unless it acquires what that has released.
 * Memory and time grow with the warps of the grid.
 */
export interface GridOrder {
  readonly chains: Chains;
  readonly shadow: GlobalShadow;
  readonly released: Synchronisation;
  /** CTAs that have begun: the number of the next one. */
  ctas: number;
  /** Strong accesses that came in no order, so that the schedule decided what they gave. */
  readonly dependences: ScheduleDependences;
  /** Told of such accesses, and of others whose order decides something. */
  readonly onDependence: DependenceListener;
}

/**
 * The order of a grid of which nothing has run; by default what it is in practice.
 *
 * @param onDependence told of what the schedule decides; default nobody
 * @param footprint where accesses to global memory are noted; default nowhere
 */
export function createGridOrder(
  { equalWrites }: Pick<MemoryModel, 'equalWrites'> = memoryModels.practice,
  onDependence: DependenceListener = () => undefined,
  footprint: GlobalFootprint | null = null,
): GridOrder {
  const dependences = createScheduleDependences();
  return {
    chains: createChains(),
    shadow: createGlobalShadow(
      {
        equalWrites,
        onUnorderedStrong: (earlier, later) => {
          dependences.add(earlier, later);
          onDependence(earlier);
        },
      },
      footprint,
    ),
    released: createSynchronisation(),
    ctas: 0,
    dependences,
    onDependence,
  };
}
