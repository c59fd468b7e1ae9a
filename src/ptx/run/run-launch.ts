import type { Architecture } from '../../hardware/index.js';
import { createMmaUnits } from '../../machine/index.js';
import type { Launch } from '../launch/index.js';
import { createProgram, type Program } from '../program/index.js';
import type { PtxModule } from '../syntax/index.js';
import { ptxInstructions } from './instruction-tables.js';
import { createDeviceMemory } from './launch-memory.js';
import { type KernelOptions, type KernelRun, runKernel } from './run-kernel.js';

/** How a launch is run. */
export interface LaunchOptions extends Omit<KernelOptions, 'mmaUnits'> {
  /** What messages call the PTX. */
  readonly file: string;
  /** The GPU whose arithmetic it is; default that of the text's target. */
  readonly architecture?: Architecture;
  /** Whether what an assembler may contract is contracted; default false. */
  readonly contract?: boolean;
}

/** What came of a launch. */
export interface LaunchRun extends KernelRun {
  readonly architecture: Architecture;
  /** What may be contracted, whether it was or not. */
  readonly contractions: Program['contractions'];
  /** The bytes of every tensor of the launch afterwards, by name. */
  readonly tensors: ReadonlyMap<string, Uint8Array>;
}

/** The GPU of a target: `sm_90a` is an sm_90, `sm_120` an sm_100. */
function architectureOf(target: string): Architecture {
  const number = Number(/[0-9]+/.exec(target)?.[0] ?? 90);
  if (number === 103) return 'sm_103';
  if (number >= 100) return 'sm_100';
  if (number >= 90) return 'sm_90';
  return number === 89 ? 'sm_89' : 'sm_80';
}

/** Whose units execute wgmma and tcgen05.mma: GPUs before sm_90 have neither. */
function machineOf(architecture: Architecture): Parameters<typeof createMmaUnits>[0] {
  return architecture === 'sm_100' || architecture === 'sm_103' ? architecture : 'sm_90';
}

/**
 * Runs a launch of a compiled kernel on the machine. The launch keeps its tensors as they are: the kernel works on copies.
 *
 * @throws RequestError for everything in the kernel that is not supported, with its lines
 */
export function runLaunch(module: PtxModule, launch: Launch, options: LaunchOptions): LaunchRun {
  const { file, contract = false, ...kernelOptions } = options;
  const { architecture = architectureOf(module.target) } = options;
  const { grid, block, cluster, dynamicSharedBytes } = launch;
  const memory = createDeviceMemory(launch);
  const program = createProgram(module, launch.entry, {
    tables: ptxInstructions(architecture),
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
      memory: memory.launchMemory(program),
      tensorMapAt: memory.tensorMapAt,
    },
    { ...kernelOptions, mmaUnits: createMmaUnits(machineOf(architecture)) },
  );
  const tensors = new Map(launch.tensors.map(({ name }) => [name, memory.bytesOf(name)]));
  return { ...run, architecture, contractions: program.contractions, tensors };
}
