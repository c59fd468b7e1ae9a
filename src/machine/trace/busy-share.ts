/** Share of each window of time in which a unit has worked. */
export interface BusyShare {
  /** @param start of a piece of work, not before the start of the one before; @param end of it */
  readonly add: (start: number, end: number) => void;
  /** The windows up to the last work: their starts, and the shares from 0 to 1. */
  readonly windows: () => readonly { readonly start: number; readonly share: number }[];
}

/**
 * A unit that has not worked yet.
 *
 * @param window clocks
 * @param units number of such units: the share is that of all
 */
export function createBusyShare(window: number, units: number): BusyShare {
  const busy: number[] = [];
  return {
    add: (start, end) => {
      for (let from = start; from < end;) {
        const index = Math.floor(from / window);
        const to = Math.min(end, (index + 1) * window);
        busy[index] = (busy[index] ?? 0) + to - from;
        from = to;
      }
    },
    windows: () =>
      Array.from(busy, (clocks = 0, index) => ({
        start: index * window,
        share: clocks / (window * units),
      })),
  };
}
