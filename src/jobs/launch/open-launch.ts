import { dirname, resolve } from 'node:path';
import { openTensorFile, readText } from '../../io/index.js';
import {
  bindLaunch,
  type Launch,
  type LaunchFile,
  type LaunchTensor,
  type OutputFile,
  parseLaunchFile,
} from '../../ptx/launch/index.js';
import type { Problem, Quantity, Tensor } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { parsePtx, type PtxModule } from '../../ptx/syntax/index.js';
import { bufferTensors } from './buffer-tensors.js';
import { contractNames, templateNames } from './contract-names.js';
import { readLaunchTensor } from './launch-tensors.js';

/** The largest files that are read, a launch file with its parameters and PTX text, and the most launches in a chain. */
const most = { launchBytes: 2 ** 24, ptxBytes: 2 ** 28, launches: 64 };

/** The paths of a launch, and replacements for those in its file. */
export interface LaunchPaths {
  /** The launch file. */
  readonly path: string;
  /** The PTX; default: the one that the file names, relative to it. */
  readonly ptx?: string | undefined;
  /** The tensors; default: those that the file names, relative to it. */
  readonly tensors?: string | undefined;
}

/** A launch file with the PTX that it names. */
export interface LaunchTemplate {
  readonly path: string;
  readonly file: LaunchFile;
  readonly module: PtxModule;
  readonly ptxPath: string;
  /** The text of the PTX. */
  readonly ptx: string;
  /** The launch that follows; null for none. */
  readonly next: LaunchTemplate | null;
}

/** A launch and its successors, in order. */
export function chainOf(template: LaunchTemplate): readonly LaunchTemplate[] {
  return template.next === null ? [template] : [template, ...chainOf(template.next)];
}

/**
 * Launches as a chain, each followed by the one behind it; the first of them.
 *
 * @param templates at least one
 */
export function linkLaunches(templates: readonly LaunchTemplate[]): LaunchTemplate {
  const [last] = templates.slice(-1);
  return templates.slice(0, -1).reduceRight((next, one) => ({ ...one, next }), last);
}

/** The outputs of all launches of a template together; a tensor that several write is listed once. */
export function chainOutputs(template: LaunchTemplate): readonly OutputFile[] {
  const outputs = chainOf(template).flatMap(({ file }) => file.outputs);
  const byName = new Map<string, OutputFile>();
  for (const output of outputs) {
    const known = byName.get(output.name);
    if (known === undefined || known.as === null) byName.set(output.name, output);
  }
  return [...byName.values()];
}

/** A problem that a template was opened on. */
export interface PosedLaunch {
  readonly problem: Problem;
  /** The tensors of the launch that are quantities of the problem, in row-major order. */
  readonly outputs: readonly {
    readonly name: string;
    readonly quantity: Quantity;
    /** As the kernel finds it. */
    readonly tensor: Tensor;
  }[];
}

/** A launch, ready to run, and its files. */
export interface OpenedLaunch extends LaunchTemplate {
  readonly launch: Launch;
  readonly tensorsPath: string;
  /** All tensors of the file, including those that the launch does not name. */
  readonly tensors: ReadonlyMap<string, LaunchTensor>;
  /** The problem of a template; null for a launch of tensors of its own. */
  readonly posed: PosedLaunch | null;
}

/**
 * Reads a launch file and its PTX, and the launches that follow it.
 *
 * @param before the launch files that lead to it
 * @throws RequestError for a file that cannot be read or is no launch file, and for launches that follow
 * themselves
 */
export async function openTemplate(
  { path, ptx }: Pick<LaunchPaths, 'path' | 'ptx'>,
  before: readonly string[] = [],
): Promise<LaunchTemplate> {
  const file = await parseLaunchFile(
    await readText(path, most.launchBytes),
    path,
    templateNames,
    contractNames,
  );
  const ptxPath = ptx ?? resolve(dirname(path), file.ptx ?? 'kernel.ptx');
  const text = await readText(ptxPath, most.ptxBytes);
  const next = await nextOf(file, [...before, resolve(path)]);
  return { path, file, ptxPath, ptx: text, module: parsePtx(text, ptxPath), next };
}

/** The launch that a file names as the next one. */
async function nextOf(
  { next }: LaunchFile,
  before: readonly string[],
): Promise<LaunchTemplate | null> {
  if (next === null) return null;
  const [path] = before.slice(-1);
  const following = resolve(dirname(path), next);
  if (before.includes(following))
    throw new RequestError(`${path}: next is ${next}, which leads to it; end the chain`);
  if (before.length === most.launches)
    throw new RequestError(
      `${path}: next is launch ${most.launches + 1}; give at most ${most.launches}`,
    );
  return openTemplate({ path: following }, before);
}

/** The tensors of a file, by name. */
async function readTensors(path: string): Promise<ReadonlyMap<string, LaunchTensor>> {
  const file = await openTensorFile(path);
  try {
    const tensors = new Map<string, LaunchTensor>();
    for (const entry of file.entries.values())
      tensors.set(entry.name, await readLaunchTensor(file, entry));
    return tensors;
  } finally {
    await file.close();
  }
}

/**
 * Reads a launch file, its PTX and its tensors, and makes a launch from them.
 *
 * @throws RequestError for files that cannot be read, and for a launch that does not fit its kernel or its
 * tensors
 */
export async function openLaunch(paths: LaunchPaths): Promise<OpenedLaunch> {
  return openWithTensors(await openTemplate(paths), paths.tensors);
}

/**
 * Reads the tensors of a launch file, and makes a launch from them.
 *
 * @param given their file; default: the one that the launch file names, relative to it
 * @param before tensors of the launches before it in a chain, of which it may name those that its own file lacks
 * @throws RequestError as `openLaunch` does
 */
export async function openWithTensors(
  template: LaunchTemplate,
  given?: string,
  before: ReadonlyMap<string, LaunchTensor> = new Map(),
): Promise<OpenedLaunch> {
  const { file, module, path } = template;
  const tensorsPath = given ?? resolve(dirname(path), file.tensors ?? 'tensors.safetensors');
  const held = await readTensors(tensorsPath);
  const buffers = bufferTensors(file, path, {}).map((tensor) => [tensor.name, tensor] as const);
  const tensors = new Map([...before, ...held, ...buffers]);
  const launch = bindLaunch(file, { module, tensors, variables: {}, fileName: path });
  return { ...template, launch, tensorsPath, tensors, posed: null };
}
