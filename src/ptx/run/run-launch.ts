import { type Architecture, lackOf } from '../../hardware/index.js';
import { createMmaUnits } from '../../machine/index.js';
import {
  barrierInstructions,
  findLaneInstruction,
  memoryInstructions,
  tensorInstructions,
  warpInstructions,
} from '../instructions/index.js';
import type { Launch } from '../launch/index.js';
import { createProgram, type InstructionTables, type Program } from '../program/index.js';
import type { PtxModule } from '../syntax/index.js';
import {
  checkBreakpoints,
  createBreakCollector,
  type BreakStop,
  type Breakpoint,
} from './breakpoints.js';
import { LaunchMemories, type DeviceMemory } from './device-memory.js';
import { changeProgram, createExecutable, type ProgramChange } from './executable.js';
import { clusterWarps, runKernel, type KernelOptions, type KernelRun } from './run-kernel.js';
import type { LaneTracer } from './lane-tracer.js';
import { workOfUnits, type WorkOfUnits } from './unit-work.js';

/** Every instruction that can run, with the arithmetic of a GPU's tensor cores. */
export function ptxInstructions(architecture: Architecture): InstructionTables {
  return {
    lane: findLaneInstruction,
    warp: warpInstructions(architecture),
    visible: [
      ...memoryInstructions,
      ...barrierInstructions,
      ...tensorInstructions.map((row) => {
        const lack = lackOf(architecture, row.name);
        const [family] = row.name.split('.');
        return lack === null ? row : { ...row, lower: () => ({ unsupported: lack, family }) };
      }),
    ],
  };
}

/** Options for running a launch. */
export interface LaunchOptions extends Omit<
  KernelOptions,
  'mmaUnits' | 'executable' | 'onWatched' | 'tracer'
> {
  /** The name of the PTX in messages. */
  readonly file: string;
  /** The GPU whose arithmetic is used; default that of the text's target. */
  readonly architecture?: Architecture;
  /** Whether the pairs that an assembler may contract are contracted; default false. */
  readonly contract?: boolean;
  /** Lines of the PTX at which registers are read; default none. */
  readonly breaks?: readonly Breakpoint[];
  /** Follows what the values of the runs stand for; default nobody does. */
  readonly tracer?: LaneTracer | undefined;
}

/** The result of running a launch. */
export interface LaunchRun extends KernelRun {
  readonly architecture: Architecture;
  /** Pairs that may be contracted, whether they were or not. */
  readonly contractions: Program['contractions'];
  /** The work on each unit of an SM, at that architecture's rates. */
  readonly work: WorkOfUnits;
  /** The values of registers at the lines of `breaks`, in the order of the run. */
  readonly stops: readonly BreakStop[];
  /** The bytes of every tensor of the launch afterwards, by name. */
  readonly tensors: ReadonlyMap<string, Uint8Array>;
  /** Addresses of the tensors in global memory; the same in every run. */
  readonly bases: ReadonlyMap<string, number>;
}

/** The GPU of a target: `sm_90a` is an sm_90, `sm_121` an sm_120, and `sm_101` is what sm_110 was called before PTX 9.0. */
function architectureOf(target: string): Architecture {
  const number = Number(/[0-9]+/.exec(target)?.[0] ?? 90);
  if (number >= 120) return 'sm_120';
  if (number >= 110 || number === 101) return 'sm_110';
  if (number === 103) return 'sm_103';
  if (number >= 100) return 'sm_100';
  if (number >= 90) return 'sm_90';
  return number === 89 ? 'sm_89' : 'sm_80';
}

/** The architecture whose units execute wgmma and tcgen05.mma: some GPUs have neither, and refuse them. */
function machineOf(architecture: Architecture): Parameters<typeof createMmaUnits>[0] {
  return architecture === 'sm_100' || architecture === 'sm_103' || architecture === 'sm_110'
    ? architecture
    : 'sm_90';
}

/** A launch with a compiled kernel, which can run any number of times. */
export interface PreparedLaunch {
  readonly program: Program;
  /**
   * Runs the launch: each run begins with the launch's tensors, and works on copies.
   *
   * @param change other items in some blocks of the program; default none
   */
  readonly run: (
    options?: Omit<KernelOptions, 'mmaUnits' | 'executable' | 'onWatched' | 'tracer'>,
    change?: ProgramChange,
  ) => LaunchRun;
}

/** The tensors of a launch after a run: their bytes, and their addresses. */
function tensorsAfter(
  { tensors }: Launch,
  { bytesOf, baseOf }: DeviceMemory,
): Pick<LaunchRun, 'tensors' | 'bases'> {
  return {
    tensors: new Map(tensors.map(({ name }) => [name, bytesOf(name)])),
    bases: new Map(
      tensors.flatMap(({ name }) => {
        const base = baseOf(name);
        return base === null ? [] : [[name, base] as const];
      }),
    ),
  };
}

/**
 * Prepares the kernel of a launch for running.
 *
 * @throws RequestError for all unsupported features of the kernel, with their lines
 */
export function prepareLaunch(
  module: PtxModule,
  launch: Launch,
  options: Pick<LaunchOptions, 'file' | 'contract' | 'architecture' | 'breaks' | 'tracer'>,
): PreparedLaunch {
  const { file, contract = false, breaks = [], tracer } = options;
  const { architecture = architectureOf(module.target) } = options;
  const { grid, block, cluster, dynamicSharedBytes } = launch;
  const memories = new LaunchMemories(launch);
  const program = createProgram(module, launch.entry, {
    tables: ptxInstructions(architecture),
    place: (variable) => memories.place(variable),
    file,
    contract,
    hasClusters: cluster.some((ctas) => ctas > 1),
    watched: new Set(breaks.map(({ line }) => line)),
  });
  checkBreakpoints(program, launch, breaks, file);
  const executable = createExecutable(program, clusterWarps(launch), tracer);
  const mmaUnits = createMmaUnits(machineOf(architecture));
  return {
    program,
    run: (kernelOptions = {}, change) => {
      const memory = memories.fresh(program);
      tracer?.begin(new Map(launch.tensors.map(({ name }) => [name, memory.storeOf(name)])));
      const { add, stops } = createBreakCollector(program, launch, breaks);
      const run = runKernel(
        {
          program,
          grid,
          block,
          cluster,
          dynamicSharedBytes,
          memory: memory.launchMemory(program),
          tensorMaps: memory.tensorMaps,
        },
        {
          ...kernelOptions,
          onWatched: add,
          mmaUnits,
          tracer,
          executable: change === undefined ? executable : changeProgram(executable, change),
        },
      );
      const work = workOfUnits(run.counts, run.counters, architecture);
      const { contractions } = program;
      return { ...run, architecture, contractions, work, stops, ...tensorsAfter(launch, memory) };
    },
  };
}

/**
 * Runs a launch of a compiled kernel on the machine. The launch's tensors do not change: the kernel works on copies.
 *
 * @throws RequestError for all unsupported features of the kernel, with their lines
 */
export function runLaunch(module: PtxModule, launch: Launch, options: LaunchOptions): LaunchRun {
  return prepareLaunch(module, launch, options).run(options);
}
