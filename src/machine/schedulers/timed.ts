import type { Scheduler } from '../scheduler.js';

/** What comes first by the clocks of the units: an estimate of how the kernel runs. */
export function timedScheduler(): Scheduler {
  return {
    name: 'timed',
    isTimed: true,
    choose: (steps) => {
      let best = 0;
      for (let i = 1; i < steps.length; i++) if (steps[i].time < steps[best].time) best = i;
      return best;
    },
  };
}
