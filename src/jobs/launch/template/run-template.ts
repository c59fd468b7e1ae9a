import { basename } from 'node:path';
import { type FormatName, formats, type Tensor } from '../../../formats/index.js';
import {
  bindLaunch,
  evaluate,
  type Launch,
  type LaunchTensor,
  type Variables,
} from '../../../ptx/launch/index.js';
import { runLaunch } from '../../../ptx/run/index.js';
import { sourceLines } from '../../../ptx/syntax/index.js';
import { UnsupportedProblem } from '../../../../properties/index.js';
import { bufferTensors } from '../buffer-tensors.js';
import { machineStatements, type MachineStatements } from '../launch-findings.js';
import { bytesOf, launchTensor, unwrittenTensor } from '../launch-tensors.js';
import { chainOf, chainOutputs, type LaunchTemplate } from '../open-launch.js';

/** A problem of any contract as templates see it. */
export interface TemplateProblem {
  /** Its numbers by their names in expressions. */
  readonly variables: Variables;
  /** The tensors that a template may name, as they lie in memory; of one name the last counts. */
  readonly tensors: readonly LaunchTensor[];
  /** The formats of its main inputs, which are those that a template takes or not. */
  readonly formats: readonly FormatName[];
  /** What an output that is given as a quantity is: its shape, and its format where the template names none; null for no quantity of the problem. */
  readonly outputAs: (
    quantity: string,
  ) => { readonly shape: readonly number[]; readonly format: FormatName } | null;
}

/** An output of a template, for the kernel to write. */
export interface PlacedOutput {
  readonly name: string;
  /** The quantity that it is. */
  readonly as: string;
  readonly tensor: Tensor;
}

/** The results of a compiled kernel on a problem. */
export interface ProblemRun {
  /** Tensors by quantity. */
  readonly outputs: Readonly<Record<string, Tensor>>;
  readonly machine: MachineStatements;
}

/** @throws UnsupportedProblem for a problem that the template does not take */
function rejectUnsupported(template: LaunchTemplate, problem: TemplateProblem): void {
  for (const { file } of chainOf(template)) {
    if (file.formats !== null && !problem.formats.every((one) => file.formats?.includes(one)))
      throw new UnsupportedProblem(`it takes ${file.formats.join(', ')}`);
    for (const requirement of file.requires)
      if (evaluate(requirement, problem.variables) === 0)
        throw new UnsupportedProblem(`it requires ${requirement}`);
  }
}

/** Tensors for the kernels to write. */
function outputTensors(
  template: LaunchTemplate,
  { outputAs }: TemplateProblem,
): readonly PlacedOutput[] {
  return chainOutputs(template).flatMap(({ name, as, format }) => {
    const quantity = as === null ? null : outputAs(as);
    if (as === null || quantity === null) return [];
    const named = (format ?? quantity.format) as FormatName;
    if (!Object.hasOwn(formats, named)) return [];
    return [{ name, as, tensor: unwrittenTensor(named, quantity.shape) }];
  });
}

/** The tensors of a template's launches, and those among them that are quantities. */
export interface TemplateTensors {
  readonly outputs: readonly PlacedOutput[];
  readonly tensors: ReadonlyMap<string, LaunchTensor>;
}

/**
 * The tensors of a template for a problem, as its first launch finds them.
 * @throws UnsupportedProblem for a problem that the template declines
 */
export function templateTensors(
  template: LaunchTemplate,
  problem: TemplateProblem,
): TemplateTensors {
  rejectUnsupported(template, problem);
  const outputs = outputTensors(template, problem);
  const tensors = [
    ...problem.tensors,
    ...chainOf(template).flatMap(({ file, path }) => bufferTensors(file, path, problem.variables)),
    ...outputs.map(({ name, tensor }) => launchTensor(name, tensor)),
  ];
  return { outputs, tensors: new Map(tensors.map((tensor) => [tensor.name, tensor])) };
}

/** One launch of a template. @throws RequestError for one that does not fit */
export function launchWith(
  { file, module, path }: LaunchTemplate,
  { variables }: TemplateProblem,
  tensors: TemplateTensors['tensors'],
): Launch {
  return bindLaunch(file, { module, tensors, variables, fileName: path });
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
 * Runs a compiled kernel on a problem of any contract, as its template says, and then the launches that follow it: each begins with the
 * tensors as those before it have left them. Races are detected in each.
 *
 * @param isRun whether a launch is run; those after one that is not are not run either. Default: all are
 * @throws UnsupportedProblem for a problem that the template declines
 * @throws RequestError for a launch that does not fit, and for instructions that are not supported
 */
export function runTemplate(
  template: LaunchTemplate,
  problem: TemplateProblem,
  isRun: (one: LaunchTemplate) => boolean = () => true,
): ProblemRun {
  const { outputs, tensors: initial } = templateTensors(template, problem);
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
    outputs: Object.fromEntries(made.map(({ as, tensor }) => [as, tensor])),
    machine: joinedStatements(statements),
  };
}
