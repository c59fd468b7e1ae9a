import { basename } from 'node:path';
import { type FormatName, formats, type Tensor } from '../../formats/index.js';
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
import { sourceLines } from '../../ptx/syntax/index.js';
import { UnsupportedProblem } from '../../../properties/index.js';
import { bufferTensors } from './buffer-tensors.js';
import { templateQuantities } from './contract-names.js';
import { machineStatements, type MachineStatements } from './launch-findings.js';
import { bytesOf, launchTensor, unwrittenTensor } from './launch-tensors.js';
import { chainOf, chainOutputs, type LaunchTemplate, type OpenedLaunch } from './open-launch.js';

/** An output of a template, for the kernel to write. */
interface PlacedOutput {
  readonly name: string;
  readonly tensor: Tensor;
  readonly quantity: Quantity;
}

/** The results of a compiled kernel on a problem. */
export interface ProblemRun {
  /** Tensors by quantity. */
  readonly outputs: Readonly<Record<string, Tensor>>;
  readonly machine: MachineStatements;
}

/** Default format of an output: that of Q for vectors, and fp32, the format of sums, for one number per row. */
function defaultFormat({ row }: Quantity, problem: Problem): FormatName {
  return row === 'vector' ? problem.q.format : 'fp32';
}

/** @throws UnsupportedProblem for a problem that the template does not take */
function rejectUnsupported(template: LaunchTemplate, problem: Problem): void {
  const [feature] = problemFeatures(problem);
  const { q, k, v } = problem;
  if (feature !== undefined)
    throw new UnsupportedProblem(`a launch file has no word for ${feature} of a problem`);
  if ([q, k, v].some(({ scales, format }) => scales !== undefined || format === 'e2m1'))
    throw new UnsupportedProblem('a launch file has no word for scaled or packed elements');
  const variables = problemVariables(problem);
  for (const { file } of chainOf(template)) {
    if (file.formats !== null && ![q, k, v].every(({ format }) => file.formats?.includes(format)))
      throw new UnsupportedProblem(`it takes ${file.formats.join(', ')}`);
    for (const requirement of file.requires)
      if (evaluate(requirement, variables) === 0)
        throw new UnsupportedProblem(`it requires ${requirement}`);
  }
}

/** Tensors for the kernels to write. */
function outputTensors(template: LaunchTemplate, problem: Problem): readonly PlacedOutput[] {
  const shape = problemShape(problem);
  return chainOutputs(template).flatMap(({ name, as, format }) => {
    const quantity = templateQuantities.find((one) => one.name === as);
    if (quantity === undefined) return [];
    const named = (format ?? defaultFormat(quantity, problem)) as FormatName;
    if (!Object.hasOwn(formats, named)) return [];
    return [{ name, tensor: unwrittenTensor(named, quantityShape(quantity, shape)), quantity }];
  });
}

/** The tensors of a problem's launches, and those among them that are quantities. */
interface ProblemTensors {
  readonly outputs: readonly PlacedOutput[];
  readonly tensors: ReadonlyMap<string, LaunchTensor>;
}

function problemTensors(
  template: LaunchTemplate,
  problem: Problem,
  beside: readonly LaunchTensor[],
): ProblemTensors {
  rejectUnsupported(template, problem);
  const outputs = outputTensors(template, problem);
  const { q, k, v } = problem;
  const tensors = [
    ...beside,
    ...Object.entries({ q, k, v }).map(([name, tensor]) => launchTensor(name, tensor)),
    ...chainOf(template).flatMap(({ file, path }) =>
      bufferTensors(file, path, problemVariables(problem)),
    ),
    ...outputs.map(({ name, tensor }) => launchTensor(name, tensor)),
  ];
  return { outputs, tensors: new Map(tensors.map((tensor) => [tensor.name, tensor])) };
}

function launchWith(
  { file, module, path }: LaunchTemplate,
  problem: Problem,
  tensors: ProblemTensors['tensors'],
): Launch {
  const variables = problemVariables(problem);
  return bindLaunch(file, { module, tensors, variables, fileName: path });
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
  const { outputs: all, tensors: known } = problemTensors(template, problem, beside);
  const chain = chainOf(template).slice(0, count);
  const written = new Set(chain.flatMap(({ file }) => file.outputs.map(({ name }) => name)));
  const outputs = all.filter(({ name }) => written.has(name));
  return chain.map((one) => {
    const launch = launchWith(one, problem, known);
    const tensors = new Map(launch.tensors.map((tensor) => [tensor.name, tensor]));
    return { ...one, launch, tensorsPath: path, tensors, posed: { problem, outputs } };
  });
}

/** The statements of the machine about several launches: each with its file if there are several. */
function joinedStatements(
  statements: readonly (readonly [path: string, MachineStatements])[],
): MachineStatements {
  if (statements.length === 1) return statements[0][1];
  const of = (kind: keyof MachineStatements) =>
    statements.flatMap(([path, all]) => all[kind].map((one) => `${one} (${basename(path)})`));
  return { faults: of('faults'), notes: of('notes') };
}

/**
 * Runs a compiled kernel on a problem, as its template says, and then the launches that follow it: each begins with the tensors as those
 * before it have left them. Races are detected in each.
 *
 * @param beside other tensors that the template may name
 * @param isRun whether a launch is run; those after one that is not are not run either. Default: all are
 * @throws UnsupportedProblem for a problem that the template declines
 * @throws RequestError for a launch that does not fit, and for instructions that are not supported
 */
export function runOnProblem(
  template: LaunchTemplate,
  problem: Problem,
  beside: readonly LaunchTensor[] = [],
  isRun: (one: LaunchTemplate) => boolean = () => true,
): ProblemRun {
  const { outputs, tensors: initial } = problemTensors(template, problem, beside);
  const tensors = new Map(initial);
  const chain = chainOf(template);
  const end = chain.findIndex((one) => !isRun(one));
  const written = new Set<string>();
  const statements = (end === -1 ? chain : chain.slice(0, end)).map((one) => {
    const launch = launchWith(one, problem, tensors);
    const run = runLaunch(one.module, launch, { file: one.ptxPath });
    for (const [name, bytes] of run.tensors) tensors.set(name, { ...tensors.get(name)!, bytes });
    for (const { name } of one.file.outputs) written.add(name);
    return [one.path, machineStatements(run, sourceLines(one.module))] as const;
  });
  const made = outputs.filter(({ name }) => written.has(name));
  for (const { name, tensor } of made) bytesOf(tensor).set(tensors.get(name)?.bytes ?? []);
  return {
    outputs: Object.fromEntries(made.map(({ quantity, tensor }) => [quantity.name, tensor])),
    machine: joinedStatements(statements),
  };
}
