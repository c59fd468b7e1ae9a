import { createPeriodicProgress } from './periodic-progress.js';

/** Shows the progress of work in named stages as that of one piece of work. */
export interface StagedProgress {
  /** @param share of the stage that is done; a stage that is not known counts for nothing */
  readonly update: (stage: string, share: number) => void;
  readonly done: () => void;
}

/**
 * Progress of all stages as one share that never falls: a stage has its part by its weight, and
 * those before it are done when it begins. Shown as `createPeriodicProgress` shows it.
 *
 * @param stages in order, with the time that each takes beside the others
 */
export function createStagedProgress(
  name: string,
  stages: readonly (readonly [stage: string, weight: number])[],
  stream: NodeJS.WriteStream = process.stderr,
  clock: () => number = () => performance.now(),
): StagedProgress {
  const progress = createPeriodicProgress(name, stream, clock);
  const total = stages.reduce((sum, [, weight]) => sum + weight, 0);
  let reached = 0;
  return {
    update: (stage, share) => {
      let before = 0;
      for (const [known, weight] of stages) {
        if (known === stage) reached = Math.max(reached, (before + share * weight) / total);
        before += weight;
      }
      progress.update(reached);
    },
    done: progress.done,
  };
}
