/** The number of backward passes that may still be computed in search of a cause. */
export interface Budget {
  /** Takes some passes, a share of one for a part; returns false, and for good, once none are left. */
  readonly takes: (passes: number) => boolean;
  /** Whether something was left out. */
  readonly isSpent: () => boolean;
}

/** Multiply-adds of a backward pass beside those of the forward: five products for two. */
const backwardShare = 2.5;

/** Multiply-adds that a search may take: some tens of seconds. */
const mostMultiplyAdds = 1e10;

/** @param forward multiply-adds of the forward pass */
export function replayBudget(forward: number): Budget {
  let left = mostMultiplyAdds / Math.max(backwardShare * forward, 1);
  let isSpent = false;
  return {
    takes: (passes) => {
      left -= passes;
      if (left < 0) isSpent = true;
      return !isSpent;
    },
    isSpent: () => isSpent,
  };
}
