import type { Scheduler } from '../scheduler.js';
import { inOrderScheduler } from './in-order.js';

/** A scheduler with a record of what it chose and among how many steps. */
export interface RecordingScheduler extends Scheduler {
  readonly choices: readonly { readonly chosen: number; readonly among: number }[];
}

/** Writes down what another scheduler chooses. */
export function recordingScheduler(scheduler: Scheduler): RecordingScheduler {
  const choices: { chosen: number; among: number }[] = [];
  return {
    ...scheduler,
    choices,
    choose: (steps) => {
      const chosen = scheduler.choose(steps);
      choices.push({ chosen, among: steps.length });
      return chosen;
    },
  };
}

/** Chooses as written down, then in order. */
export function replayingScheduler(choices: readonly number[]): Scheduler {
  const rest = inOrderScheduler();
  let decision = 0;
  return {
    name: `replay of ${choices.length} choices`,
    choose: (steps) => {
      const choice = choices[decision++];
      return choice === undefined || choice >= steps.length ? rest.choose(steps) : choice;
    },
  };
}
