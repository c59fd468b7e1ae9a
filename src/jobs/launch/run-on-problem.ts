import { allocateStorage, type FormatName, formats, type Tensor } from '../../formats/index.js';
import {
  type Problem,
  problemFeatures,
  problemShape,
  type Quantity,
  quantityShape,
} from '../../problem/index.js';
import {
  bindLaunch,
  evaluate,
  type Launch,
  type LaunchTensor,
  problemVariables,
} from '../../ptx/launch/index.js';
import { runLaunch } from '../../ptx/run/index.js';
import { UnsupportedProblem } from '../../../properties/index.js';
import { machineStatements, type MachineStatements } from './launch-findings.js';
import { bytesOf, launchTensor } from './launch-tensors.js';
import { type LaunchTemplate, templateQuantities } from './open-launch.js';

/** An output of a template, for the kernel to write. */
interface PlacedOutput {
  readonly name: string;
  readonly tensor: Tensor;
  readonly quantity: Quantity;
}

/** What a compiled kernel made of a problem. */
export interface ProblemRun {
  /** By quantity. */
  readonly outputs: Readonly<Record<string, Tensor>>;
  readonly machine: MachineStatements;
}

/** What an output has where nothing else is said: the format of Q, and a row's number that of sums. */
function defaultFormat({ row }: Quantity, problem: Problem): FormatName {
  return row === 'vector' ? problem.q.format : 'fp32';
}

/** @throws UnsupportedProblem for a problem that the template does not take */
function rejectUnsupported({ file }: LaunchTemplate, problem: Problem): void {
  const [feature] = problemFeatures(problem);
  const { q, k, v } = problem;
  if (feature !== undefined)
    throw new UnsupportedProblem(`a launch file has no word for ${feature} of a problem`);
  if ([q, k, v].some(({ scales, format }) => scales !== undefined || format === 'e2m1'))
    throw new UnsupportedProblem('a launch file has no word for scaled or packed elements');
  if (file.formats !== null && ![q, k, v].every(({ format }) => file.formats?.includes(format)))
    throw new UnsupportedProblem(`it takes ${file.formats.join(', ')}`);
  const variables = problemVariables(problem);
  for (const requirement of file.requires)
    if (evaluate(requirement, variables) === 0)
      throw new UnsupportedProblem(`it requires ${requirement}`);
}

/** Tensors that the kernel is to write, in which every byte is set: what stays so is NaN. */
function outputTensors({ file }: LaunchTemplate, problem: Problem): readonly PlacedOutput[] {
  const shape = problemShape(problem);
  return file.outputs.flatMap(({ name, as, format }) => {
    const quantity = templateQuantities.find((one) => one.name === as);
    if (quantity === undefined) return [];
    const dims = quantityShape(quantity, shape);
    const named = (format ?? defaultFormat(quantity, problem)) as FormatName;
    if (!Object.hasOwn(formats, named)) return [];
    const elements = dims.reduce((all, one) => all * one, 1);
    const tensor = { format: named, shape: dims, data: allocateStorage(formats[named], elements) };
    bytesOf(tensor).fill(0xff);
    return [{ name, tensor, quantity }];
  });
}

/** A template made a launch for a problem. */
export interface ProblemLaunch {
  readonly launch: Launch;
  /** What the kernel is to write that is a quantity. */
  readonly outputs: readonly PlacedOutput[];
}

/**
 * A launch of a template for a problem: Q, K and V are the tensors `q`, `k` and `v`, [batch, heads, seqlen, dim] in row-major
 * order, and each output that is given `as` a quantity is one of that quantity's shape.
 *
 * @param beside other tensors that the template may name
 * @throws UnsupportedProblem for a problem that the template declines
 * @throws RequestError for a launch that does not fit
 */
export function launchOnProblem(
  template: LaunchTemplate,
  problem: Problem,
  beside: readonly LaunchTensor[],
): ProblemLaunch {
  rejectUnsupported(template, problem);
  const { file, module, path } = template;
  const outputs = outputTensors(template, problem);
  const { q, k, v } = problem;
  const tensors = [
    ...beside,
    ...Object.entries({ q, k, v }).map(([name, tensor]) => launchTensor(name, tensor)),
    ...outputs.map(({ name, tensor }) => launchTensor(name, tensor)),
  ];
  const launch = bindLaunch(file, {
    module,
    tensors: new Map(tensors.map((tensor) => [tensor.name, tensor])),
    variables: problemVariables(problem),
    fileName: path,
  });
  return { launch, outputs };
}

/**
 * Runs a compiled kernel on a problem, as its template says; races are looked for.
 *
 * @param beside as of `launchOnProblem`
 * @throws UnsupportedProblem for a problem that the template declines
 * @throws RequestError for a launch that does not fit, and for instructions that are not supported
 */
export function runOnProblem(
  template: LaunchTemplate,
  problem: Problem,
  beside: readonly LaunchTensor[] = [],
): ProblemRun {
  const { launch, outputs } = launchOnProblem(template, problem, beside);
  const run = runLaunch(template.module, launch, { file: template.ptxPath });
  for (const { name, tensor } of outputs) bytesOf(tensor).set(run.tensors.get(name) ?? []);
  return {
    outputs: Object.fromEntries(outputs.map(({ quantity, tensor }) => [quantity.name, tensor])),
    machine: machineStatements(run),
  };
}
