import { dirname, resolve } from 'node:path';
import { gradientQuantities } from '../../audit/index.js';
import { openTensorFile, readText } from '../../io/index.js';
import {
  bindLaunch,
  type Launch,
  type LaunchFile,
  type LaunchTensor,
  parseLaunchFile,
} from '../../ptx/launch/index.js';
import { quantities, type Quantity } from '../../problem/index.js';
import { parsePtx, type PtxModule } from '../../ptx/syntax/index.js';
import { readLaunchTensor } from './launch-tensors.js';

/** The largest files that are read: a launch file lists parameters, and PTX is text. */
const most = { launchBytes: 2 ** 24, ptxBytes: 2 ** 28 };

/** What an output of a template may be. */
export const templateQuantities: readonly Quantity[] = [...quantities, ...gradientQuantities];

/** Where a launch is to be found, and what replaces what its file says. */
export interface LaunchPaths {
  /** The launch file. */
  readonly path: string;
  /** The PTX; default: as the file says, beside it. */
  readonly ptx?: string | undefined;
  /** The tensors; default: as the file says, beside it. */
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
}

/** A launch, ready to run, and where it is from. */
export interface OpenedLaunch extends LaunchTemplate {
  readonly launch: Launch;
  readonly tensorsPath: string;
  /** All tensors of the file, those among them that the launch does not name. */
  readonly tensors: ReadonlyMap<string, LaunchTensor>;
}

/**
 * Reads a launch file and its PTX.
 *
 * @throws RequestError for what cannot be read, or is none
 */
export async function openTemplate({
  path,
  ptx,
}: Pick<LaunchPaths, 'path' | 'ptx'>): Promise<LaunchTemplate> {
  const names = templateQuantities.map(({ name }) => name);
  const file = await parseLaunchFile(await readText(path, most.launchBytes), path, names);
  const ptxPath = ptx ?? resolve(dirname(path), file.ptx ?? 'kernel.ptx');
  const text = await readText(ptxPath, most.ptxBytes);
  return { path, file, ptxPath, ptx: text, module: parsePtx(text, ptxPath) };
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
 * Reads a launch file, its PTX and its tensors, and makes a launch of them.
 *
 * @throws RequestError for what cannot be read, and for a launch that does not fit its kernel or its tensors
 */
export async function openLaunch(paths: LaunchPaths): Promise<OpenedLaunch> {
  const template = await openTemplate(paths);
  const { file, module, path } = template;
  const tensorsPath =
    paths.tensors ?? resolve(dirname(path), file.tensors ?? 'tensors.safetensors');
  const tensors = await readTensors(tensorsPath);
  const launch = bindLaunch(file, { module, tensors, variables: {}, fileName: path });
  return { ...template, launch, tensorsPath, tensors };
}
