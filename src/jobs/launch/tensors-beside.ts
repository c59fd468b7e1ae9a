import { outputGradient } from '../../audit/index.js';
import {
  openTensorFile,
  problemLayout,
  readProblem,
  recurrentFamily,
  type TensorFile,
  toHeadsFirst,
} from '../../io/index.js';
import type { LaunchTensor, ParameterFile } from '../../ptx/launch/index.js';
import { RequestError } from '../../request-error.js';
import { plainText } from '../../words/index.js';
import { UnsupportedProblem } from '../../../properties/index.js';
import { launchTensor, readLaunchTensor } from './launch-tensors.js';
import { templateQuantities } from './contract-names.js';
import { chainOf, type LaunchTemplate, type OpenedLaunch } from './open-launch.js';
import { poseLaunches } from './template/run-on-problem.js';

/** The names of tensors among parameters. */
function namesOf(parameters: readonly ParameterFile[]): readonly string[] {
  return parameters.flatMap((parameter) => {
    if (parameter.kind === 'tensor') return [parameter.tensor];
    if (parameter.kind === 'tensorMap' || parameter.kind === 'encodedTensorMap')
      return [parameter.map.tensor];
    return parameter.kind === 'struct' ? namesOf(parameter.members) : [];
  });
}

/** The names of tensors that a template takes beside Q, K, V, its outputs and its buffers. */
export function tensorsBeside(template: LaunchTemplate): ReadonlySet<string> {
  const files = chainOf(template).map(({ file }) => file);
  const made = files.flatMap(({ outputs, buffers }) => [...outputs, ...buffers]);
  const own = new Set(['q', 'k', 'v', ...made.map(({ name }) => name)]);
  const named = files.flatMap(({ parameters }) => namesOf(parameters));
  return new Set(named.filter((name) => !own.has(name)));
}

/** Whether a launch itself takes a tensor. */
export function takesTensor({ file }: LaunchTemplate, name: string): boolean {
  return namesOf(file.parameters).includes(name);
}

/** Quantities that lie in a problem's file as its Q does. */
const laidOut = [...templateQuantities, outputGradient].filter(({ row }) => row === 'vector');

/**
 * Tensors that a template takes beside Q, K and V, of a problem's file by their names there; those that the file lacks are left out.
 *
 * @param headsFirst whether the file's outputs are [batch, heads, seqlen, dim], which they become
 */
export async function readTensorsBeside(
  template: LaunchTemplate,
  file: TensorFile,
  headsFirst: boolean,
): Promise<readonly LaunchTensor[]> {
  const read = async (name: string): Promise<readonly LaunchTensor[]> => {
    const entry = file.entries.get(name);
    if (entry === undefined) return [];
    if (!headsFirst && laidOut.some((one) => one.name === name))
      return [launchTensor(name, toHeadsFirst(await file.read(name)))];
    return [await readLaunchTensor(file, entry)];
  };
  return (await Promise.all([...tensorsBeside(template)].map(read))).flat();
}

/** @throws RequestError for a file of linear attention, whose problems are no launches of attention */
function rejectRecurrence(file: TensorFile): void {
  const family = recurrentFamily(file, {});
  if (family !== null)
    throw new RequestError(
      `${plainText(file.path)}: is of linear attention (${family}); flashproof audit --launch takes a template on such a problem`,
    );
}

/**
 * A template as the launches of the problem in a file, in their order.
 *
 * @param countOf how many launches, of the first ones, by the tensors of the file that they take beside Q, K and V; default: all
 * @throws RequestError for a file that holds no problem, one that the template declines, and a launch that does not fit
 */
export async function openOnProblem(
  template: LaunchTemplate,
  path: string,
  countOf: (beside: readonly LaunchTensor[]) => number = () => Infinity,
): Promise<readonly OpenedLaunch[]> {
  const file = await openTensorFile(path);
  try {
    rejectRecurrence(file);
    const problem = await readProblem(file);
    const beside = await readTensorsBeside(template, file, problemLayout(file, {}) === 'bhsd');
    return poseLaunches(template, problem, { tensors: beside, path }, countOf(beside));
  } catch (error) {
    if (!(error instanceof UnsupportedProblem)) throw error;
    throw new RequestError(
      `${template.path}: declines the problem of ${path}: ${error.message}; give another, or change the template`,
    );
  } finally {
    await file.close();
  }
}
