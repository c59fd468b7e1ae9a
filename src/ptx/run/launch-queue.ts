/** The clusters of a grid that have not started, by their numbers in the order of the grid. */
export interface LaunchQueue {
  /** Starts the next cluster; null where none is left. */
  readonly start: () => number | null;
  /** Cancels the launch of the next cluster, which then never starts; null where none is left. */
  readonly cancel: () => number | null;
  /** Whether `cancel` has been called: then the schedule decides which cluster does which work. */
  readonly hasBeenAsked: () => boolean;
}

/**
 * The clusters of a grid before its first one starts.
 *
 * @param runs the clusters that run at all
 * @param order the numbers of all clusters in the order in which they start; null: ascending
 */
export function createLaunchQueue(
  clusters: number,
  runs: (cluster: number) => boolean,
  order: readonly number[] | null = null,
): LaunchQueue {
  let started = 0;
  let isAsked = false;
  const start = (): number | null => {
    while (started < clusters) {
      const number = order === null ? started : order[started];
      started++;
      if (runs(number)) return number;
    }
    return null;
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
