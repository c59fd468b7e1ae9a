import {
  type Problem,
  problemFeatures,
  problemShape,
  type Quantity,
  quantityShape,
} from '../../../problem/index.js';
import { type LaunchTensor, problemVariables } from '../../../ptx/launch/index.js';
import { UnsupportedProblem } from '../../../../properties/index.js';
import { templateQuantities } from '../contract-names.js';
import { launchTensor } from '../launch-tensors.js';
import { chainOf, type LaunchTemplate, type OpenedLaunch } from '../open-launch.js';
import {
  launchWith,
  runTemplate,
  templateTensors,
  type ProblemRun,
  type TemplateProblem,
} from './run-template.js';

export type { ProblemRun } from './run-template.js';

/** @throws UnsupportedProblem for a problem that no launch file has words for */
function rejectUnsaid(problem: Problem): void {
  const [feature] = problemFeatures(problem);
  const { q, k, v } = problem;
  if (feature !== undefined)
    throw new UnsupportedProblem(`a launch file has no word for ${feature} of a problem`);
  if ([q, k, v].some(({ scales, format }) => scales !== undefined || format === 'e2m1'))
    throw new UnsupportedProblem('a launch file has no word for scaled or packed elements');
}

function quantityNamed(name: string): Quantity | undefined {
  return templateQuantities.find((one) => one.name === name);
}

/**
 * A problem of attention as templates see it: Q, K and V are the tensors `q`, `k` and `v`, [batch, heads, seqlen, dim]. Outputs have by
 * default the format of Q for vectors, and fp32, the format of sums, for one number per row.
 * @param beside other tensors that a template may name
 * @throws UnsupportedProblem for a problem that no launch file has words for
 */
function attentionForTemplates(problem: Problem, beside: readonly LaunchTensor[]): TemplateProblem {
  rejectUnsaid(problem);
  const { q, k, v } = problem;
  const shape = problemShape(problem);
  return {
    variables: problemVariables(problem),
    formats: [q, k, v].map(({ format }) => format),
    tensors: [
      ...beside,
      ...Object.entries({ q, k, v }).map(([name, tensor]) => launchTensor(name, tensor)),
    ],
    outputAs: (name) => {
      const quantity = quantityNamed(name);
      if (quantity === undefined) return null;
      const format = quantity.row === 'vector' ? q.format : 'fp32';
      return { shape: quantityShape(quantity, shape), format };
    },
  };
}

/** Tensors that a template may name beside those of its problem, and the path of their file. */
export interface TensorsBeside {
  readonly tensors: readonly LaunchTensor[];
  readonly path: string;
}

/**
 * The launches of a template for a problem, in their order: Q, K and V are the tensors `q`, `k` and `v`, [batch, heads, seqlen, dim] in
 * row-major order, and each output that is given `as` a quantity is one of that quantity's shape. Each has the tensors as the first
 * finds them.
 *
 * @param count of launches, of the first ones
 * @throws UnsupportedProblem for a problem that the template declines
 * @throws RequestError for a launch that does not fit
 */
export function poseLaunches(
  template: LaunchTemplate,
  problem: Problem,
  { tensors: beside, path }: TensorsBeside,
  count = Infinity,
): readonly OpenedLaunch[] {
  const posed = attentionForTemplates(problem, beside);
  const { outputs: all, tensors: known } = templateTensors(template, posed);
  const chain = chainOf(template).slice(0, count);
  const written = new Set(chain.flatMap(({ file }) => file.outputs.map(({ name }) => name)));
  const outputs = all.flatMap(({ name, as, tensor }) => {
    const quantity = quantityNamed(as);
    return quantity === undefined || !written.has(name) ? [] : [{ name, tensor, quantity }];
  });
  return chain.map((one) => {
    const launch = launchWith(one, posed, known);
    const tensors = new Map(launch.tensors.map((tensor) => [tensor.name, tensor]));
    return { ...one, launch, tensorsPath: path, tensors, posed: { problem, outputs } };
  });
}

/**
 * Runs a compiled kernel on a problem of attention, as `runTemplate` does.
 *
 * @param beside other tensors that the template may name
 * @param isRun as `runTemplate` has it
 * @throws UnsupportedProblem for a problem that the template declines
 * @throws RequestError for a launch that does not fit, and for instructions that are not supported
 */
export function runOnProblem(
  template: LaunchTemplate,
  problem: Problem,
  beside: readonly LaunchTensor[] = [],
  isRun?: (one: LaunchTemplate) => boolean,
): ProblemRun {
  return runTemplate(template, attentionForTemplates(problem, beside), isRun);
}
