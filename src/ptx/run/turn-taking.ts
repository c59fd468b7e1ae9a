import { inOrderScheduler, type Scheduler, type Step } from '../../machine/index.js';

/** Steps after which the turn goes on although the warp could, so that one that polls does not keep all others. */
const turn = 1024;

/**
 * In order, but no warp (or strand of one) goes for ever while others could: after its turn the next that may go on
 * does.
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
