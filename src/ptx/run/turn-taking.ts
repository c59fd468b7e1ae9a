import { inOrderScheduler, type Scheduler, type Step } from '../../machine/index.js';

/**
 * Number of steps after which the turn passes on although the warp could continue, so that a polling warp does not keep
 * all others from running.
 */
const turn = 1024;

/**
 * A scheduler in order, in which no warp (or strand of one) runs for ever while others could: after its turn the
 * next one that can go on does.
 */
export function turnTakingScheduler(): Scheduler {
  const inOrder = inOrderScheduler();
  let last: Step | null = null;
  let taken = 0;
  return {
    name: 'in order',
    choose: (steps) => {
      let choice = inOrder.choose(steps);
      if (steps[choice] !== last) taken = 0;
      else if (++taken >= turn) {
        choice = (choice + 1) % steps.length;
        taken = 0;
      }
      last = steps[choice];
      return choice;
    },
  };
}
