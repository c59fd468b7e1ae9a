import type { WarpPlace, WarpProgram } from './instruction.js';
import type { SharedMemory } from './memory/index.js';
import type { MemoryModel } from './memory-model.js';
import type { MmaUnits } from './mma-units.js';
import type { Scheduler } from './scheduler.js';
import type { TraceEvent } from './state.js';
import type { UnitRates } from './unit-rates.js';

/** What a cluster is to run. */
export interface ClusterLaunch {
  /** 1, or 2 for a pair. */
  readonly ctas: 1 | 2;
  readonly warps: number;
  /** What the program calls a warp, for findings. */
  readonly warpName?: (warp: number) => string;
  /**
   * The layout of a CTA's shared memory, before it starts.
   * @param shared of the CTA
   */
  readonly allocate?: (shared: SharedMemory) => void;
  /** The program of a warp, with the shared memory of its CTA as `allocate` has laid it out. */
  readonly program: (place: WarpPlace) => WarpProgram;
}

/** How a cluster is run. */
export interface RunOptions {
  /** Default: in order. */
  readonly scheduler?: Scheduler;
  /** Default: `practice`. */
  readonly model?: MemoryModel;
  /** Whether races are looked for; default true. */
  readonly races?: boolean;
  /** The tensor core's arithmetic and the rates; default those of sm_100. */
  readonly mmaUnits?: MmaUnits;
  readonly rates?: UnitRates;
  readonly trace?: (event: TraceEvent) => void;
  /** Steps after which the run is given up as endless; default 10^8. */
  readonly mostSteps?: number;
}
