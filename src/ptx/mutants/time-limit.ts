import type { Scheduler } from '../../machine/index.js';
import type { KernelOptions } from '../run/index.js';

/** Thrown when a run has exceeded its time. */
export class OutOfTime extends Error {}

/** Number of steps between two looks at the clock. */
const stepsBetween = 256;

/** Ends runs that exceed a time. */
export interface TimeLimit {
  /** The schedulers, which throw OutOfTime once the time has passed. */
  readonly within: (
    create: NonNullable<KernelOptions['scheduler']>,
  ) => NonNullable<KernelOptions['scheduler']>;
}

/** A limit that begins now. */
export function createTimeLimit(seconds: number): TimeLimit {
  const end = performance.now() + 1000 * seconds;
  return {
    within: (create) => (cluster) => {
      const scheduler: Scheduler = create(cluster);
      let steps = 0;
      return {
        ...scheduler,
        choose: (choices) => {
          if (++steps % stepsBetween === 0 && performance.now() > end) throw new OutOfTime();
          return scheduler.choose(choices);
        },
      };
    },
  };
}
