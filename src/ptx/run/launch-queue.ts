/** The clusters of a grid that have not started, by their numbers in the order of the grid. */
export interface LaunchQueue {
  /** Starts the next one; null where none is left. */
  readonly start: () => number | null;
  /** Cancels the launch of the next one, which then never starts; null where none is left. */
  readonly cancel: () => number | null;
  /** Whether `cancel` has been called: then which cluster does what depends on the schedule. */
  readonly hasBeenAsked: () => boolean;
}

/**
 * The clusters of a grid before its first one starts.
 *
 * @param runs which of them are to run at all
 */
export function createLaunchQueue(
  clusters: number,
  runs: (cluster: number) => boolean,
): LaunchQueue {
  let next = 0;
  let isAsked = false;
  const start = (): number | null => {
    while (next < clusters && !runs(next)) next++;
    return next < clusters ? next++ : null;
  };
  return {
    start,
    cancel: () => {
      isAsked = true;
      return start();
    },
    hasBeenAsked: () => isAsked,
  };
}
