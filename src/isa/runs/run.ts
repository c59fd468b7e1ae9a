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

/**
 * Registers that an instruction reads or writes, for the k-th of a run of executions: in every lane
 * the words from `first + lane·laneStride + k·step·width` on, where width is the instruction's.
 */
export interface Operand {
  readonly words: Uint32Array;
  /** The same memory as fp32 numbers. */
  readonly floats: Float32Array;
  /** Words before lane 0's first one. */
  readonly first: number;
  /** Words from a lane to the next; 0 for words that all lanes share. */
  readonly laneStride: number;
  /** Operands from one execution to the next; 0 for operands that all executions share. */
  readonly step: number;
}

/** `count` executions of one instruction, one after another, in each of the active lanes. */
export interface Run {
  readonly destination: Operand;
  readonly sources: readonly Operand[];
  readonly count: number;
  readonly activeLanes: LaneMask;
}

/**
 * Carries out a run on operands that have been checked; `step` counts words here. Lanes are
 * independent; within one an execution sees the results of earlier ones of the run.
 */
export type RunLoop = (run: Run) => void;

/** The loop that evaluates word by word, for any instruction. */
export function evaluatingLoop(evaluate: (...sources: number[]) => number): RunLoop {
  return ({ destination, sources, count, activeLanes }) => {
    const [a, b = a, c = a, d = a] = sources;
    for (let lane = 0; lane < warpLanes; lane++) {
      if (!isActive(activeLanes, lane)) continue;
      let at = destination.first + lane * destination.laneStride;
      let i = a.first + lane * a.laneStride;
      let j = b.first + lane * b.laneStride;
      let k = c.first + lane * c.laneStride;
      let l = d.first + lane * d.laneStride;
      for (let n = 0; n < count; n++) {
        destination.words[at] = evaluate(a.words[i], b.words[j], c.words[k], d.words[l]);
        at += destination.step;
        i += a.step;
        j += b.step;
        k += c.step;
        l += d.step;
      }
    }
  };
}
