import type { Tensor } from '../../formats/index.js';
import { RequestError } from '../../request-error.js';

/**
 * What kernels of serving layers are given in the place of gates: g = −exp(A_log) · softplus(a + dt_bias). Source: Yang et al. 2024 (arXiv 2412.06464) and
 * Kimi Linear 2025 (2510.26692), and SGLang's fused_sigmoid_gating_delta_rule_update.
 */
export interface GateInputs {
  /** [value heads]: the logarithms of the rates. */
  readonly aLog: Tensor;
  /** As `g`. */
  readonly a: Tensor;
  /** [value heads], with a further axis of key dimensions where the family has a decay for each; default: nothing is added to a. */
  readonly dtBias?: Tensor | undefined;
}

/** Refuses a tensor of another shape. @throws RequestError that names it */
export function checkShape(name: string, tensor: Tensor, wanted: readonly number[]): void {
  if (
    tensor.shape.length !== wanted.length ||
    tensor.shape.some((size, axis) => size !== wanted[axis])
  )
    throw new RequestError(
      `${name} has shape [${tensor.shape.join(', ')}]; give it [${wanted.join(', ')}]`,
    );
}

/**
 * Checks what gates are made of against the shape of gates.
 * @throws RequestError for other shapes
 */
export function checkGateInputs(
  { aLog, a, dtBias }: GateInputs,
  [batch, tokens, heads, ...rest]: readonly number[],
): void {
  checkShape('A_log', aLog, [heads]);
  checkShape('a', a, [batch, tokens, heads, ...rest]);
  if (dtBias) checkShape('dt_bias', dtBias, [heads, ...rest]);
}
