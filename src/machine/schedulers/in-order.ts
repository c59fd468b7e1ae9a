import type { Scheduler } from '../scheduler.js';
import type { Step } from '../state.js';

/**
 * The oldest operation that may be performed, else the warp that went last, else the first warp that
 * may go on.
 *
 * @param isHeldBack steps that come only when no other step may
 */
export function inOrderChoice(
  steps: readonly Step[],
  last: Step | null,
  isHeldBack: (step: Step) => boolean = () => false,
): number {
  let firstWarp = -1;
  let lastWarp = -1;
  let operation = -1;
  steps.forEach((step, i) => {
    if (isHeldBack(step)) return;
    if (step.chosenAs === 'operation') {
      if (operation === -1) operation = i;
    } else {
      if (firstWarp === -1) firstWarp = i;
      if (step === last) lastWarp = i;
    }
  });
  if (operation !== -1) return operation;
  return lastWarp !== -1 ? lastWarp : Math.max(firstWarp, 0);
}

/**
 * Every operation completes as soon as it may; else the warps take turns, each going on until it has to
 * wait. The schedule with the fewest changes of warp.
 */
export function inOrderScheduler(): Scheduler {
  let last: Step | null = null;
  return {
    name: 'in order',
    choose: (steps) => {
      const choice = inOrderChoice(steps, last);
      last = steps[choice];
      return choice;
    },
  };
}
