import type { Step } from './state.js';

/** Decides what happens next in a run. */
export interface Scheduler {
  /** What findings and reports call the schedule; says how to get it again. */
  readonly name: string;
  /** Whether the steps' times are computed: only the timed schedule needs them. */
  readonly isTimed?: boolean;
  /**
   * The index of one of the steps that may come next: warps in the order of CTAs and warps, then
   * operations in the order of their issue. There is at least one.
   */
  readonly choose: (steps: readonly Step[]) => number;
}
