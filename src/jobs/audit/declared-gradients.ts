import { type KernelSettings } from '../../../kernels/index.js';
import { kernelGradientPremises, type GradientPremises } from '../../audit/index.js';
import type { FormatName } from '../../formats/index.js';
import type { Problem } from '../../problem/index.js';
import { declaredModel, modelNamed, type ArithmeticRequest } from './declared-arithmetic.js';

/**
 * The premises of gradients by the model that a request declares; undefined if it declares none, or one of the forward
 * pass alone: the gradients are judged as those of any correct kernel then.
 * @param settings of both passes, as text by key
 * @param output the format of dQ, dK and dV
 * @throws RequestError for a problem or settings that the model's backward does not take
 */
export function declaredGradients(
  problem: Problem,
  request: ArithmeticRequest,
  settings: KernelSettings,
  output: FormatName,
): GradientPremises | undefined {
  const name = declaredModel(request);
  const model = name === undefined ? '' : modelNamed(name, request.models);
  if (typeof model === 'string' || model.backward === null) return undefined;
  return kernelGradientPremises(problem, output, model.backward.arithmetic(problem, settings));
}
