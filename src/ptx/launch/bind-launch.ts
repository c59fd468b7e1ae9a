import { type FormatName, formats } from '../../formats/index.js';
import { RequestError } from '../../request-error.js';
import { nearestName, plainText } from '../../words/index.js';
import type { PtxFunction, PtxModule } from '../syntax/index.js';
import { amountOf, type Evaluation } from './amounts.js';
import type { Variables } from './expression.js';
import type { Extents, Launch, LaunchOutput, LaunchTensor } from './launch.js';
import type { Amount, LaunchFile, OutputFile } from './launch-file.js';
import { packParameters } from './pack-parameters.js';

/** Limits of the hardware: CUDA C++ Programming Guide, "Features and Technical Specifications per Compute Capability". */
const most = {
  grid: [2 ** 31 - 1, 65535, 65535],
  block: [1024, 1024, 64],
  threads: 1024,
  /** Maximum with cudaFuncAttributeNonPortableClusterSizeAllowed. */
  cluster: 16,
  /** 227 KiB, for compute capabilities 9.0 and 10.0. */
  sharedBytes: 232448,
} as const;

const product = (extents: readonly number[]) => extents.reduce((all, one) => all * one, 1);

/** Three whole numbers from 1 on; those that are left out are 1. */
function extentsOf(
  what: string,
  amounts: readonly Amount[],
  limits: readonly number[],
  evaluation: Evaluation,
): Extents {
  const values = [0, 1, 2].map((axis) => {
    const value = axis < amounts.length ? amountOf(evaluation, amounts[axis]) : 1;
    if (Number.isInteger(value) && value >= 1 && value <= limits[axis]) return value;
    throw new RequestError(
      `${what}[${axis}] is ${value}; give a whole number from 1 to ${limits[axis]}`,
    );
  });
  return [values[0], values[1], values[2]];
}

/** The numbers of a directive as extents, 1 where they are missing; null where the entry has no such directive. */
function declared(entry: PtxFunction, directive: string): readonly number[] | null {
  const numbers = entry.directives.get(directive);
  return numbers === undefined ? null : [0, 1, 2].map((axis) => numbers[axis] ?? 1);
}

function requireEqual(
  what: string,
  given: Extents,
  due: readonly number[],
  directive: string,
): void {
  if (given.some((value, axis) => value !== due[axis]))
    throw new RequestError(
      `${what} is [${given.join(', ')}]; the kernel is compiled for [${due.join(', ')}] (.${directive})`,
    );
}

/** The threads of a CTA. */
function blockOf(file: LaunchFile, entry: PtxFunction, evaluation: Evaluation): Extents {
  const required = declared(entry, 'reqntid');
  const amounts = file.block ?? required;
  if (amounts === null)
    throw new RequestError('block is missing, and the kernel does not say it by .reqntid');
  const block = extentsOf('block', amounts, most.block, evaluation);
  if (required !== null) requireEqual('block', block, required, 'reqntid');
  const limit = product(declared(entry, 'maxntid') ?? [most.threads]);
  if (product(block) > Math.min(limit, most.threads))
    throw new RequestError(
      `block has ${product(block)} threads; give at most ${Math.min(limit, most.threads)}`,
    );
  return block;
}

/** The CTAs of a cluster; the extents of the grid are multiples of them. */
function clusterOf(
  file: LaunchFile,
  entry: PtxFunction,
  grid: Extents,
  evaluation: Evaluation,
): Extents {
  const required = declared(entry, 'reqnctapercluster');
  const limits = [most.cluster, most.cluster, most.cluster];
  const amounts = file.cluster ?? required ?? [1];
  const cluster = extentsOf('cluster', amounts, limits, evaluation);
  if (required !== null) requireEqual('cluster', cluster, required, 'reqnctapercluster');
  const limit = Math.min(entry.directives.get('maxclusterrank')?.[0] ?? most.cluster, most.cluster);
  if (product(cluster) > limit)
    throw new RequestError(`cluster has ${product(cluster)} CTAs; give at most ${limit}`);
  if (grid.some((ctas, axis) => ctas % cluster[axis] !== 0))
    throw new RequestError(
      `grid is [${grid.join(', ')}], no multiple of the cluster [${cluster.join(', ')}]; make it one`,
    );
  return cluster;
}

function entryOf(module: PtxModule, name: string): PtxFunction {
  const entries = module.functions.filter(({ kind, body }) => kind === 'entry' && body !== null);
  const entry = entries.find((one) => one.name === name);
  if (entry !== undefined) return entry;
  const names = entries.map((one) => one.name);
  const nearest = nearestName(name, names);
  throw new RequestError(
    `the PTX has no kernel "${plainText(name)}"; ${nearest !== null ? `did you mean "${plainText(nearest)}"?` : names.length === 0 ? 'it has none' : `it has ${plainText(names.slice(0, 20).join(', '))}`}`,
  );
}

function outputOf({ name, as, format }: OutputFile): LaunchOutput {
  if (format !== null && !Object.hasOwn(formats, format))
    throw new RequestError(
      `output "${plainText(name)}" has the format "${plainText(format)}"; give one of ${Object.keys(formats).join(', ')}`,
    );
  return { name, as, format: format as FormatName | null };
}

/** The context of a launch besides its file. */
export interface LaunchContext {
  readonly module: PtxModule;
  readonly tensors: ReadonlyMap<string, LaunchTensor>;
  /** Numbers of the problem, for expressions; none where there is no problem. */
  readonly variables: Variables;
  /** The file's name in messages. */
  readonly fileName: string;
}

function bind(file: LaunchFile, { module, tensors, variables }: LaunchContext): Launch {
  const evaluation = { variables };
  const entry = entryOf(module, file.entry);
  if (module.addressSize !== 64)
    throw new RequestError(
      `the PTX has addresses of ${module.addressSize} bits; compile it for 64 (.address_size 64)`,
    );
  const used = new Map<string, LaunchTensor>();
  const findTensor = (name: string): LaunchTensor => {
    const tensor = tensors.get(name);
    if (tensor === undefined) {
      const nearest = nearestName(name, tensors.keys());
      throw new RequestError(
        `there is no tensor "${plainText(name)}"; ${nearest !== null ? `did you mean "${plainText(nearest)}"?` : `there are ${plainText([...tensors.keys()].slice(0, 20).join(', ')) || 'none'}`}`,
      );
    }
    used.set(name, tensor);
    return tensor;
  };
  const grid = extentsOf('grid', file.grid, most.grid, evaluation);
  const block = blockOf(file, entry, evaluation);
  const cluster = clusterOf(file, entry, grid, evaluation);
  const dynamicSharedBytes = amountOf(evaluation, file.dynamicSharedBytes);
  if (
    !Number.isInteger(dynamicSharedBytes) ||
    dynamicSharedBytes < 0 ||
    dynamicSharedBytes > most.sharedBytes
  )
    throw new RequestError(
      `dynamicSharedBytes is ${dynamicSharedBytes}; give a whole number up to ${most.sharedBytes}`,
    );
  const packed = packParameters(entry.parameters, file.parameters, evaluation, findTensor);
  const outputs = file.outputs.map(outputOf);
  for (const [i, { name }] of outputs.entries()) {
    if (outputs.findIndex((one) => one.name === name) !== i)
      throw new RequestError(`outputs name "${plainText(name)}" twice; name it once`);
    findTensor(name);
  }
  return {
    ...packed,
    entry: entry.name,
    grid,
    block,
    cluster,
    dynamicSharedBytes,
    tensors: [...used.values()],
    outputs,
  };
}

/**
 * A launch, ready to run: the numbers of its file are calculated, and checked against its kernel and its tensors.
 *
 * @throws RequestError with one line that begins with the file's name
 */
export function bindLaunch(file: LaunchFile, context: LaunchContext): Launch {
  try {
    return bind(file, context);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    throw new RequestError(`${plainText(context.fileName)}: ${error.message}`);
  }
}
