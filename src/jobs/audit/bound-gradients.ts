import {
  backwardOf,
  findModelAmong,
  kernelModels,
  type KernelSettings,
} from '../../../kernels/index.js';
import {
  anyGradientPremises,
  declaredGradientPremises,
  gradientFormat,
  gradientQuantities,
  measureGradients,
  type GradientDeclaration,
  type GradientPremises,
} from '../../audit/index.js';
import type { FormatName } from '../../formats/index.js';
import type { Problem, Tensor } from '../../problem/index.js';
import type { BoundedGradients } from '../../report/json/index.js';
import { toReportedTechniques } from '../../report/json/index.js';
import { declaredGradients, declaredModel, type ArithmeticRequest } from './declared-arithmetic.js';

/** A problem with dO, and the arithmetic of a kernel's gradients. */
export interface GradientBoundRequest extends ArithmeticRequest {
  readonly problem: Problem;
  readonly dout: Tensor;
  /** The format of dQ, dK and dV; null for that of Q. */
  readonly outputFormat: FormatName | null;
  /** Premises declared for the kernel's backward pass. */
  readonly declared: GradientDeclaration;
  /** The settings of both passes of a model, as text by key. */
  readonly settings: () => KernelSettings;
}

/** @throws RequestError for a model that has no backward pass */
function premisesOf(request: GradientBoundRequest): GradientPremises {
  const { problem, outputFormat, models = kernelModels } = request;
  const output = outputFormat ?? gradientFormat(problem, []);
  const model = declaredModel(request);
  if (model !== undefined) backwardOf(findModelAmong(models, model));
  const known =
    model === undefined
      ? undefined
      : declaredGradients(problem, request, request.settings(), output);
  return declaredGradientPremises(
    problem,
    known ?? anyGradientPremises(problem, output),
    request.declared,
  );
}

/**
 * The most that each technique of a kernel may move dQ, dK and dV, without running anything.
 * @param progress called with the share of the whole, from 0 to 1
 * @throws RequestError for a model without a backward pass, a problem or settings that it does not take, and a dO of
 * another shape than the output
 */
export function boundGradients(
  request: GradientBoundRequest,
  progress: (done: number) => void = () => undefined,
): BoundedGradients {
  const premises = premisesOf(request);
  const { techniques } = measureGradients(request.problem, request.dout, {
    premises,
    given: { out: null, lse: null },
    progress,
  });
  return {
    arithmetic: premises.description,
    format: premises.output,
    gradients: gradientQuantities.map(({ name, label, parts }) => ({
      name,
      label,
      parts,
      techniques: toReportedTechniques(techniques[name]),
    })),
  };
}
