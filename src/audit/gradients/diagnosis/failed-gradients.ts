import type { Tensor } from '../../../problem/index.js';
import type { GradientPremises, StoredForward } from '../bounds/index.js';
import type { GradientFinding } from '../gradient-findings.js';
import type { GivenGradient, GradientJudgement } from '../judge-gradient.js';

/** Gradients that failed, and what they were judged by. */
export interface FailedGradients extends GradientJudgement {
  /** [batch, heads, queries, vDim] */
  readonly dout: Tensor;
  readonly given: readonly GivenGradient[];
  readonly findings: readonly GradientFinding[];
  /** What the forward pass stored. */
  readonly forward: StoredForward;
  /** What the bounds are of. */
  readonly premises: GradientPremises;
}
