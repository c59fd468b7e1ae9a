import type { Tensor } from '../../../problem/index.js';
import type { GradientPremises, StoredForward } from '../bounds/index.js';
import type { Finding } from '../../findings.js';
import type { GivenGradient, GradientJudgement } from '../judge-gradient.js';

/** Gradients that failed, with the data that they were judged by. */
export interface FailedGradients extends GradientJudgement {
  /** [batch, heads, queries, vDim] */
  readonly dout: Tensor;
  readonly given: readonly GivenGradient[];
  readonly findings: readonly Finding[];
  /** The stored results of the forward pass. */
  readonly forward: StoredForward;
  /** The premises that the bounds are of. */
  readonly premises: GradientPremises;
}
