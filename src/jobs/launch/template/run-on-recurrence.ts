import { asFamilyStores, familyShape, recurrentInputs } from '../../../io/index.js';
import {
  recurrentQuantities,
  recurrentQuantityNames,
  recurrentQuantityShape,
  recurrentScale,
  recurrentShape,
  recurrentTensorName,
  type RecurrentGradientInputs,
  type RecurrentProblem,
  type RecurrentQuantityName,
  type RecurrentResults,
} from '../../../problem/index.js';
import type { LaunchTensor, Variables } from '../../../ptx/launch/index.js';
import { launchTensor } from '../launch-tensors.js';
import type { LaunchTemplate } from '../open-launch.js';
import { runTemplate, type ProblemRun, type TemplateProblem } from './run-template.js';
import { takesTensor } from '../tensors-beside.js';

/** A problem of linear attention for a template, with what gradients begin with and the other tensors of its file. */
export interface TemplateRecurrence {
  readonly problem: RecurrentProblem;
  readonly gradientInputs?: RecurrentGradientInputs | undefined;
  /** Tensors that a template may name beside those of the recurrence. */
  readonly beside: readonly LaunchTensor[];
}

/**
 * The numbers of a problem of linear attention by their names in expressions of a template: `batch`, `tokens` (of packed sequences all
 * together), `sequences`, `keyHeads`, `valueHeads`, `keyDim`, `valueDim`, `scale`, `normalisation` (0 for none) and `initialState` (1 or 0).
 */
function recurrentVariables(problem: RecurrentProblem): Variables {
  const { batch, tokens, sequences, keyHeads, valueHeads, keyDim, valueDim } =
    recurrentShape(problem);
  return {
    batch,
    tokens,
    sequences: sequences.length,
    keyHeads,
    valueHeads,
    keyDim,
    valueDim,
    scale: recurrentScale(problem),
    normalisation: problem.normalisation?.epsilon ?? 0,
    initialState: problem.initialState === undefined ? 0 : 1,
  };
}

/** A quantity of a family by the name of its tensor there, or by that of the other families. */
export function quantityOf(
  as: string,
  { family }: Pick<RecurrentProblem, 'family'>,
): RecurrentQuantityName | undefined {
  return (
    recurrentQuantityNames.find((name) => name === as) ??
    recurrentQuantityNames.find((name) => recurrentTensorName(family, name) === as)
  );
}

/** A problem of linear attention as templates see it. By default an output has the format of v, and every other result fp32. */
function recurrenceForTemplates(posed: TemplateRecurrence): TemplateProblem {
  const { problem, gradientInputs, beside } = posed;
  const { q, k, v } = problem;
  const shape = recurrentShape(problem);
  return {
    variables: recurrentVariables(problem),
    formats: [q, k, v].map(({ format }) => format),
    tensors: [
      ...beside,
      ...recurrentInputs(problem, gradientInputs).map(([name, tensor]) =>
        launchTensor(name, tensor),
      ),
    ],
    outputAs: (as) => {
      const name = quantityOf(as, problem);
      const sizes = name === undefined ? null : recurrentQuantityShape(name, problem, shape);
      if (name === undefined || sizes === null) return null;
      const stored = familyShape(sizes, recurrentQuantities[name].of, problem.family);
      return { shape: stored, format: name === 'out' ? v.format : 'fp32' };
    },
  };
}

/** The results of a compiled kernel on a problem of linear attention. */
export interface RecurrenceRun extends Pick<ProblemRun, 'machine'> {
  /** In the shapes of `recurrentQuantityShape`. */
  readonly results: RecurrentResults;
}

/**
 * Runs a compiled kernel on a problem of linear attention, as `runTemplate` does: tensors have the names and the lie that files of the
 * family have by default, [batch, tokens, heads, …], states [sequences, heads, key dim, value dim], of mamba2 value first. Launches from
 * the first that takes `dout` on run only where there is one.
 *
 * @throws UnsupportedProblem for a problem that the template declines
 * @throws RequestError for a launch that does not fit, and for instructions that are not supported
 */
export function runOnRecurrence(
  template: LaunchTemplate,
  posed: TemplateRecurrence,
): RecurrenceRun {
  const { problem, gradientInputs } = posed;
  const isRun = (one: LaunchTemplate) => gradientInputs !== undefined || !takesTensor(one, 'dout');
  const { outputs, machine } = runTemplate(template, recurrenceForTemplates(posed), isRun);
  const results = Object.entries(outputs).flatMap(([as, tensor]) => {
    const name = quantityOf(as, problem);
    if (name === undefined) return [];
    return [[name, asFamilyStores(tensor, recurrentQuantities[name].of, problem.family)] as const];
  });
  return { results: Object.fromEntries(results), machine };
}
