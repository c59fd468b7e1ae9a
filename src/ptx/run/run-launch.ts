import { RequestError } from '../../request-error.js';
import type { Launch } from '../launch/index.js';
import { createProgram, type Program } from '../program/index.js';
import type { PtxModule } from '../syntax/index.js';
import { ptxInstructions } from './instruction-tables.js';
import { createDeviceMemory } from './launch-memory.js';
import { type KernelOptions, type KernelRun, runKernel } from './run-kernel.js';

/** How a launch is run. */
export interface LaunchOptions extends KernelOptions {
  /** What messages call the PTX. */
  readonly file: string;
  /** Whether what an assembler may contract is contracted; default false. */
  readonly contract?: boolean;
}

/** What came of a launch. */
export interface LaunchRun extends KernelRun {
  /** What may be contracted, whether it was or not. */
  readonly contractions: Program['contractions'];
  /** The bytes of every tensor of the launch afterwards, by name. */
  readonly tensors: ReadonlyMap<string, Uint8Array>;
}

/**
 * Runs a launch of a compiled kernel on the machine. The launch keeps its tensors as they are: the kernel works on copies.
 *
 * @throws RequestError for everything in the kernel that is not supported, with its lines
 */
export function runLaunch(module: PtxModule, launch: Launch, options: LaunchOptions): LaunchRun {
  const { file, contract = false, ...kernelOptions } = options;
  if (launch.tensorMaps.length > 0)
    throw new RequestError(
      `the launch of ${launch.entry} has tensor maps, which do not run yet; compile it without TMA`,
    );
  const { grid, block, cluster, dynamicSharedBytes } = launch;
  const memory = createDeviceMemory(launch);
  const program = createProgram(module, launch.entry, {
    tables: ptxInstructions,
    place: memory.place,
    file,
    contract,
    hasClusters: cluster.some((ctas) => ctas > 1),
  });
  memory.initialise(program);
  const run = runKernel(
    {
      program,
      grid,
      block,
      cluster,
      dynamicSharedBytes,
      parameters: memory.parameters,
      memory: memory.launchMemory(program),
    },
    kernelOptions,
  );
  const tensors = new Map(launch.tensors.map(({ name }) => [name, memory.bytesOf(name)]));
  return { ...run, contractions: program.contractions, tensors };
}
