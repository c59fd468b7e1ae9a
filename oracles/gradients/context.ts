import type { Mask, Problem, ProblemShape } from '../../src/problem/index.js';
import type { Accuracy } from '../attention/row.js';
import type { Rules } from '../attention/rules.js';
import type { GradientEngine } from './gradient-engine.js';
import type { BiasSums, SharedSums } from './shared-sums.js';

/** Everything that all rows of a problem are solved with. */
export interface GradientContext {
  readonly problem: Problem;
  readonly shape: ProblemShape;
  readonly rules: Rules;
  readonly mask: Mask;
  readonly accuracy: Accuracy;
  readonly engine: GradientEngine;
  readonly wantsQueries: boolean;
  /** Sums of dBias; null if not wanted. */
  readonly bias: BiasSums | null;
  readonly sink: SharedSums | null;
}
