import { bindLaunch, type LaunchTensor, parseLaunchFile } from '../../../src/ptx/launch/index.js';
import type { Launch, Variables } from '../../../src/ptx/launch/index.js';
import { parsePtx } from '../../../src/ptx/syntax/index.js';
import { RequestError } from '../../../src/request-error.js';

/** A kernel of some parameters and directives. */
export function kernelText(parameters: string, directives = ''): string {
  return `.version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry k(${parameters}) ${directives} { ret; }`;
}

/** A tensor of so many bytes, all 0. */
export function tensorOf(name: string, bytes = 4096): LaunchTensor {
  return { name, dtype: 'U8', elementBits: 8, shape: [bytes], bytes: new Uint8Array(bytes) };
}

/** What a launch is made from, besides its file. */
export interface LaunchCase {
  readonly ptx: string;
  readonly variables?: Variables;
  readonly tensors?: readonly LaunchTensor[];
}

/** The launch of a file, most of which is said by default. */
export async function launchOf(
  file: object,
  { ptx, variables = {}, tensors }: LaunchCase,
): Promise<Launch> {
  const text = JSON.stringify({
    entry: 'k',
    grid: [1, 1, 1],
    block: [32, 1, 1],
    parameters: [],
    outputs: [],
    ...file,
  });
  const given = tensors ?? [tensorOf('q'), tensorOf('o')];
  return bindLaunch(await parseLaunchFile(text, 'launch.json', ['out', 'lse']), {
    module: parsePtx(ptx),
    tensors: new Map(given.map((tensor) => [tensor.name, tensor])),
    variables,
    fileName: 'launch.json',
  });
}

/** The message with which a launch is refused. @throws whatever else is thrown, and where it is not refused */
export async function refusalOf(file: object, launch: LaunchCase): Promise<string> {
  try {
    await launchOf(file, launch);
  } catch (error) {
    if (error instanceof RequestError) return error.message;
    throw error;
  }
  throw new Error('not refused');
}
