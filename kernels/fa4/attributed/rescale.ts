import type { RunningMaximum } from './running-maximum.js';

/** What a block of keys does to the sums of the blocks before it. */
export interface BlockRescale {
  readonly path: RunningMaximum;
  /** [128]: α in fp64. */
  readonly exactAlpha: Float64Array;
}

/** value · α in fp32, at the fp32 number nearest to value, plus what the difference contributes. */
export function emulatedRescale(value: number, alpha: number): number {
  const nearest = Math.fround(value);
  const product = Math.fround(nearest * alpha);
  return value === nearest ? product : product + (value - nearest) * alpha;
}
