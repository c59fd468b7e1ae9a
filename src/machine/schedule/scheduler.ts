import type { Step } from '../state.js';

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

/** A scheduler with a record of what it chose and among how many steps. */
interface RecordingScheduler extends Scheduler {
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
