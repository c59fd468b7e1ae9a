import { warpLanes, type Operand } from './operand.js';

/** `count` executions of one instruction, one after another, in each of the active lanes. */
export interface Run {
  readonly destination: Operand;
  readonly sources: readonly Operand[];
  readonly count: number;
  /** Bit l stands for lane l. */
  readonly activeLanes: number;
}

/**
 * Carries out a run on operands that have been checked; `step` counts words here. Lanes are
 * independent; within one an execution sees what earlier ones of the run wrote.
 */
export type RunLoop = (run: Run) => void;

/** Whether bit `lane` is set. */
export function isActive(activeLanes: number, lane: number): boolean {
  return ((activeLanes >>> lane) & 1) === 1;
}

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
