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
 * Ordering state that the clusters of one grid share: global memory, and the releases there. The clusters may run
 * one after another: none knows another's events, unless it acquires what that one has released. Memory and time
 * grow with the warps of the grid.
 */
export interface GridOrder {
  readonly chains: Chains;
  readonly shadow: GlobalShadow;
  readonly released: Synchronisation;
  /** CTAs that have begun: the number of the next one. */
  ctas: number;
  /** Strong accesses in no order, whose values the schedule decided. */
  readonly dependences: ScheduleDependences;
  /** Called for such accesses, and for others whose order decides something. */
  readonly onDependence: DependenceListener;
}

/**
 * The order of a grid that has not run; by default under the model of practice.
 *
 * @param onDependence called for each outcome that the schedule decides; default nothing
 * @param footprint record of accesses to global memory; default none
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
