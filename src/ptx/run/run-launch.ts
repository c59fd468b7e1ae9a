import type { Architecture } from '../../hardware/index.js';
import {
  byteStoreOf,
  createConstantMemory,
  createGlobalMemory,
  createMmaUnits,
  genericAddress,
  type LaunchMemory,
} from '../../machine/index.js';
import {
  barrierInstructions,
  findLaneInstruction,
  memoryInstructions,
  tensorInstructions,
  warpInstructions,
  type TensorMaps,
} from '../instructions/index.js';
import type { Launch, LaunchTensor } from '../launch/index.js';
import {
  createProgram,
  type InstructionTables,
  type PlaceVariable,
  type Program,
} from '../program/index.js';
import type { PtxModule } from '../syntax/index.js';
import {
  checkBreakpoints,
  createBreakCollector,
  type BreakStop,
  type Breakpoint,
} from './breakpoints.js';
import { changeProgram, createExecutable, type ProgramChange } from './executable.js';
import { clusterWarps, runKernel, type KernelOptions, type KernelRun } from './run-kernel.js';
import { createTensorMaps, placeMap } from './tensor-maps.js';
import { workOfUnits, type WorkOfUnits } from './unit-work.js';

/** Every instruction that can run, with the arithmetic of a GPU's tensor cores. */
export function ptxInstructions(architecture: Architecture): InstructionTables {
  return {
    lane: findLaneInstruction,
    warp: warpInstructions(architecture),
    visible: [...memoryInstructions, ...barrierInstructions, ...tensorInstructions],
  };
}

/** The parts of a launch in the memory of the device. */
interface DeviceMemory {
  /** Allocates a variable of the module. */
  readonly place: PlaceVariable;
  /** Gives the variables of a program their contents before the kernel starts. */
  readonly initialise: (program: Pick<Program, 'variables'>) => void;
  /** The current bytes of a tensor, and their beginning; an empty tensor has no place. */
  readonly bytesOf: (tensor: string) => Uint8Array;
  readonly baseOf: (tensor: string) => number | null;
  readonly tensorMaps: TensorMaps;
  readonly launchMemory: (program: Pick<Program, 'localBytes'>) => LaunchMemory;
}

/**
 * Allocates the memory of a launch: a copy of each tensor, and unwritten scratch buffers, each with red zones. The pointers
 * to them are written into the parameters; a pointer to an empty tensor is null.
 *
 * @throws RequestError for tensor maps of forms that the machine does not support
 */
function createDeviceMemory(launch: Launch): DeviceMemory {
  const global = createGlobalMemory();
  const constant = createConstantMemory();
  const parameters = launch.parameters.slice();
  const tensors = new Map(launch.tensors.map((tensor) => [tensor.name, allocate(tensor)] as const));
  const scratch = launch.scratch.map((bytes, i) => {
    const name = `scratch buffer ${i}`;
    return global.allocate({ name, contents: null, bytes });
  });

  function allocate({ name, shape, elementBits, bytes }: LaunchTensor) {
    if (bytes.byteLength === 0) return null;
    return global.allocate({ name, contents: bytes.slice(), tensor: { shape, elementBits } });
  }

  const view = new DataView(parameters.buffer);
  for (const { offset, target } of launch.pointers) {
    const base =
      target.kind === 'tensor' ? tensors.get(target.name)?.base : scratch[target.index].base;
    const byteOffset = target.kind === 'tensor' ? target.byteOffset : 0;
    view.setBigUint64(offset, BigInt(base === undefined ? 0 : base + byteOffset), true);
  }
  const maps = new Map(
    launch.tensorMaps.map(({ offset, map }) => [
      genericAddress('param', offset),
      placeMap(map, tensors.get(map.tensor)),
    ]),
  );
  const contents = new Map(
    launch.tensors.map(({ name, bytes }) => [tensors.get(name)?.base, bytes] as const),
  );
  return {
    tensorMaps: createTensorMaps({
      parameters: maps,
      find: global.find,
      before: ({ base }) => contents.get(base) ?? null,
    }),
    place: ({ name, space, bytes }) => {
      const memory = space === 'const' ? constant : global;
      const isReadOnly = space === 'const';
      return memory.allocate({ name, contents: new Uint8Array(bytes), isReadOnly }).base;
    },
    initialise: ({ variables }) => {
      for (const { space, address, contents } of variables)
        (space === 'const' ? constant : global).find(address)?.store.bytes.set(contents);
    },
    bytesOf: (tensor) => tensors.get(tensor)?.store.bytes ?? new Uint8Array(0),
    baseOf: (tensor) => tensors.get(tensor)?.base ?? null,
    launchMemory: ({ localBytes }) => ({
      global,
      constant,
      parameters: byteStoreOf(parameters),
      localBytes,
    }),
  };
}

/** Options for running a launch. */
export interface LaunchOptions extends Omit<
  KernelOptions,
  'mmaUnits' | 'executable' | 'onWatched'
> {
  /** The name of the PTX in messages. */
  readonly file: string;
  /** The GPU whose arithmetic is used; default that of the text's target. */
  readonly architecture?: Architecture;
  /** Whether the pairs that an assembler may contract are contracted; default false. */
  readonly contract?: boolean;
  /** Lines of the PTX at which registers are read; default none. */
  readonly breaks?: readonly Breakpoint[];
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

/** The GPU of a target: `sm_90a` is an sm_90, `sm_120` an sm_100. */
function architectureOf(target: string): Architecture {
  const number = Number(/[0-9]+/.exec(target)?.[0] ?? 90);
  if (number === 103) return 'sm_103';
  if (number >= 100) return 'sm_100';
  if (number >= 90) return 'sm_90';
  return number === 89 ? 'sm_89' : 'sm_80';
}

/** The architecture whose units execute wgmma and tcgen05.mma: GPUs before sm_90 have neither. */
function machineOf(architecture: Architecture): Parameters<typeof createMmaUnits>[0] {
  return architecture === 'sm_100' || architecture === 'sm_103' ? architecture : 'sm_90';
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
    options?: Omit<KernelOptions, 'mmaUnits' | 'executable' | 'onWatched'>,
    change?: ProgramChange,
  ) => LaunchRun;
}

/**
 * Prepares the kernel of a launch for running.
 *
 * @throws RequestError for all unsupported features of the kernel, with their lines
 */
export function prepareLaunch(
  module: PtxModule,
  launch: Launch,
  options: Pick<LaunchOptions, 'file' | 'contract' | 'architecture' | 'breaks'>,
): PreparedLaunch {
  const { file, contract = false, breaks = [] } = options;
  const { architecture = architectureOf(module.target) } = options;
  const { grid, block, cluster, dynamicSharedBytes } = launch;
  let memory: DeviceMemory | null = createDeviceMemory(launch);
  const variables: Parameters<PlaceVariable>[0][] = [];
  const program = createProgram(module, launch.entry, {
    tables: ptxInstructions(architecture),
    place: (variable) => {
      variables.push(variable);
      return memory!.place(variable);
    },
    file,
    contract,
    hasClusters: cluster.some((ctas) => ctas > 1),
    watched: new Set(breaks.map(({ line }) => line)),
  });
  checkBreakpoints(program, launch, breaks, file);
  const executable = createExecutable(program, clusterWarps(launch));
  const mmaUnits = createMmaUnits(machineOf(architecture));

  /**
   * The memory of a run: for the first run the memory in which variables were placed; in any other they get the same
   * addresses.
   */
  function freshMemory(): DeviceMemory {
    const fresh = memory ?? createDeviceMemory(launch);
    if (memory === null) for (const variable of variables) fresh.place(variable);
    memory = null;
    fresh.initialise(program);
    return fresh;
  }

  return {
    program,
    run: (kernelOptions = {}, change) => {
      const own = freshMemory();
      const { add, stops } = createBreakCollector(program, launch, breaks);
      const run = runKernel(
        {
          program,
          grid,
          block,
          cluster,
          dynamicSharedBytes,
          memory: own.launchMemory(program),
          tensorMaps: own.tensorMaps,
        },
        {
          ...kernelOptions,
          onWatched: add,
          mmaUnits,
          executable: change === undefined ? executable : changeProgram(executable, change),
        },
      );
      const tensors = new Map(launch.tensors.map(({ name }) => [name, own.bytesOf(name)]));
      const work = workOfUnits(run.counts, run.counters, architecture);
      const bases = new Map(
        launch.tensors.flatMap(({ name }) => {
          const base = own.baseOf(name);
          return base === null ? [] : [[name, base] as const];
        }),
      );
      const { contractions } = program;
      return { ...run, architecture, contractions, work, stops, tensors, bases };
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
