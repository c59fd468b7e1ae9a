import type { GradientArithmetic } from '../../../../kernels/index.js';
import type { FormatName } from '../../../formats/index.js';
import type { Problem } from '../../../problem/index.js';
import { anyGradientPremises, type GradientPremises } from './gradient-premises.js';

/**
 * The premises of a kernel that says how it computes gradients: those of any correct kernel, but for what it says.
 * @param output the format of dQ, dK and dV
 */
export function kernelGradientPremises(
  problem: Problem,
  output: FormatName,
  arithmetic: GradientArithmetic,
): GradientPremises {
  return { ...anyGradientPremises(problem, output), ...arithmetic };
}
