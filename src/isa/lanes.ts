/** The lanes of a warp. */
export const warpLanes = 32;

/** Some lanes of a warp: bit l stands for lane l, 32 bits as a number from 0 to 2^32 − 1. */
export type LaneMask = number;

/** All lanes of a warp. */
export const allLanes: LaneMask = 0xffffffff;

/** One lane, where it does not matter which: the choice of elect.sync in a converged warp. */
export const electedLane: LaneMask = 1;

/** Whether a lane is among these. */
export function isActive(lanes: LaneMask, lane: number): boolean {
  return ((lanes >>> lane) & 1) === 1;
}

/** Number of these lanes. */
export function laneCount(lanes: LaneMask): number {
  let count = 0;
  for (let rest = lanes >>> 0; rest !== 0; rest = (rest & (rest - 1)) >>> 0) count++;
  return count;
}
