import { blackwellOf } from '../../../src/hardware/index.js';
import {
  byteStoreOf,
  createByteStore,
  createMmaUnits,
  createTensorMap,
  memoryModels,
  mostRegisters,
  runCluster,
  unitRates,
  warpLanes,
  type ClusterLaunch,
  type RunOptions,
  type TensorMap,
  type WarpProgram,
} from '../../../src/machine/index.js';
import { formats, patternsOf } from '../../../src/formats/index.js';
import {
  problemShape,
  type Problem,
  type ProblemShape,
  type Tensor,
} from '../../../src/problem/index.js';
import type { KernelProgramOptions, ProgramClusterRun } from '../../kernel-program.js';
import {
  exponentScale,
  fa4Configuration,
  type Fa4Configuration,
  type Fa4Format,
} from '../configuration.js';
import { ctasOf } from '../thread-blocks.js';
import type { InputPatterns } from '../../online-softmax/units.js';
import { layOut, type ProgramContext, setUp, warpName, warpRoles } from './setup.js';
import { correctionWarp } from './correction-warp.js';
import { epilogueWarp, loadWarp } from './bulk-copy-warps.js';
import { mmaWarp } from './mma-warp.js';
import {
  planProgram,
  swizzleOf,
  type ProgramOptions,
  type ProgramPlan,
  type TileLayout,
} from './plan.js';
import { createWebAssemblyRows, type RowArithmetic } from './rows/index.js';
import { softmaxFragments, softmaxWarp } from './softmax-warp.js';
import { clusterQueries, workTiles } from './tiles.js';

/** Changes the instructions of a warp on their way to the machine. */
export type ProgramChange = (program: WarpProgram, context: ProgramContext) => WarpProgram;

/** Options of a run of the program on the machine. */
export interface ProgramRunOptions extends ProgramOptions, Omit<KernelProgramOptions, 'mutant'> {
  /** Default: the forward's own arithmetic, in WebAssembly. */
  readonly rows?: (setting: Parameters<typeof createWebAssemblyRows>[0]) => RowArithmetic;
  readonly change?: ProgramChange;
  readonly mostSteps?: number;
}

/** The program made ready for a problem. Clusters do not depend on one another. */
export interface PreparedProgram {
  readonly shape: ProblemShape;
  readonly configuration: Fa4Configuration;
  readonly plan: ProgramPlan;
  /** Number of clusters that have tiles to work on. */
  readonly clusters: number;
  /** [batch · heads · queries · vDim] patterns in the output's format; filled by the runs. */
  readonly out: Uint16Array;
  /** [batch · heads · queries] fp32 bits, natural logarithm. */
  readonly lse: Uint32Array;
  readonly run: (cluster: number) => ProgramClusterRun;
}

const outputBytes = 2;

/** Patterns in memory of their own, as TMA requires: aligned to 16 bytes. */
function globalMemory(tensor: Tensor): Uint8Array {
  const patterns = patternsOf(tensor.data, formats[tensor.format]) as InputPatterns;
  const bytes = new Uint8Array(Math.max(16 * Math.ceil(patterns.byteLength / 16), 16));
  bytes.set(new Uint8Array(patterns.buffer, patterns.byteOffset, patterns.byteLength));
  return bytes;
}

function tensorMap(
  name: string,
  bytes: Uint8Array,
  elementBytes: 1 | 2,
  [heads, rows, columns]: readonly [number, number, number],
  { boxColumns, boxBytes, rows: boxRows }: TileLayout,
): TensorMap {
  return createTensorMap({
    name,
    place: { store: byteStoreOf(bytes), offset: 0 },
    elementBytes,
    dims: [columns, rows, heads],
    strides: [columns * elementBytes, rows * columns * elementBytes],
    box: [boxColumns, boxRows, 1],
    swizzle: swizzleOf(boxBytes),
  });
}

/** The warp without a role: it gives back its registers, as many as its group where the ISA is to be followed. */
function* idleWarp(context: ProgramContext): WarpProgram {
  yield* setUp(context);
  yield { op: 'setmaxnreg', action: 'dec', registers: context.plan.isaFences ? 48 : 24 };
}

const warpPrograms = {
  softmax: softmaxWarp,
  correction: correctionWarp,
  MMA: mmaWarp,
  epilogue: epilogueWarp,
  load: loadWarp,
  idle: idleWarp,
} as const satisfies Record<(typeof warpRoles)[number], (context: ProgramContext) => WarpProgram>;

/** The tensors in global memory, as TMA copies them. */
function tensorMaps(
  { problem, shape, elementBytes, q, k, v, o }: ProgramPlan,
  out: Uint8Array,
): ProgramContext['maps'] {
  const { batch, heads, kvHeads, queries, keys, qkDim, vDim } = shape;
  const map = (
    name: 'Q' | 'K' | 'V',
    tensor: Tensor,
    dims: readonly [number, number, number],
    layout: TileLayout,
  ): TensorMap => tensorMap(name, globalMemory(tensor), elementBytes, dims, layout);
  return {
    q: map('Q', problem.q, [batch * heads, queries, qkDim], q),
    k: map('K', problem.k, [batch * kvHeads, keys, qkDim], k),
    v: map('V', problem.v, [batch * kvHeads, keys, vDim], v),
    o: tensorMap('O', out, outputBytes, [batch * heads, queries, vDim], o),
  };
}

/** Options of a cluster's run on the machine. */
function machineOptions(
  { architecture }: Fa4Configuration,
  options: ProgramRunOptions,
): Omit<RunOptions, 'scheduler' | 'trace'> {
  return {
    mmaUnits: createMmaUnits(architecture),
    rates: unitRates[blackwellOf(architecture)],
    model: options.model ?? memoryModels.practice,
    races: options.races ?? true,
    ...(options.mostSteps === undefined ? {} : { mostSteps: options.mostSteps }),
  };
}

/** Calls back for the events of a cluster; empty where nobody wants them. */
function traceOf(
  cluster: number,
  { trace }: Pick<ProgramRunOptions, 'trace'>,
): Pick<RunOptions, 'trace'> {
  return trace === undefined ? {} : { trace: (event) => trace(event, cluster) };
}

/**
 * FlashAttention-4's forward as Blackwell executes it: warps, tensor memory, shared memory, barriers,
 * asynchronous loads and MMAs, one or two CTAs. Under every legal schedule the outputs and LSEs are the
 * bits of `createFa4Forward` with the same configuration; illegal acts are among the findings.
 *
 * Evidence: the arithmetic is that of the forward. The order of instructions is that of
 * flash_fwd_sm100.py of Dao-AILab/flash-attention; the machine guarantees what the PTX ISA's text says.
 * Nothing of the execution has been compared with a Blackwell GPU.
 *
 * @param overrides choices that differ from FlashAttention-4's for this problem
 * @throws RequestError for problems that the forward or `planProgram` does not take
 */
export function prepareFa4Program(
  problem: Problem,
  overrides: Partial<Fa4Configuration> = {},
  options: ProgramRunOptions = {},
): PreparedProgram {
  const shape = problemShape(problem);
  const configuration = fa4Configuration(problem, shape, overrides);
  const format = problem.q.format as Fa4Format;
  const ctas = ctasOf(problem, shape, configuration);
  const plan = planProgram(problem, shape, configuration, ctas, options);
  const { batch, heads, queries, vDim } = shape;
  const outValues = batch * heads * queries * vDim;
  const outBytes = new Uint8Array(16 * Math.ceil((outputBytes * outValues) / 16 + 1));
  const lse = createByteStore(4 * batch * heads * queries);
  const maps = tensorMaps(plan, outBytes);
  const createRows =
    options.rows ?? ((setting) => createWebAssemblyRows(setting, softmaxFragments(plan)));
  const scale = exponentScale(problem.scale, configuration);
  const rows = createRows({ configuration, format, scale });
  const runOptions = machineOptions(configuration, options);
  const tilesOfHead = Math.ceil(queries / clusterQueries(plan));

  function run(cluster: number): ProgramClusterRun {
    const scheduler = options.scheduler?.(cluster);
    const tiles = workTiles(plan, cluster);
    let laidOut = plan;
    const launch: ClusterLaunch = {
      ctas: plan.ctas,
      warps: warpRoles.length,
      registersPerThread: mostRegisters(warpRoles.length * warpLanes),
      warpName,
      allocate: (shared) => (laidOut = layOut(plan, shared)),
      program: (place) => {
        const context = { plan: laidOut, place, tiles, rows, maps, lse };
        const program = warpPrograms[warpRoles[place.warp]](context);
        return options.change?.(program, context) ?? program;
      },
    };
    const result = runCluster(launch, {
      ...runOptions,
      ...traceOf(cluster, options),
      ...(scheduler === undefined ? {} : { scheduler }),
    });
    return { cluster, ...result, schedule: scheduler?.name ?? 'in order' };
  }

  return {
    shape,
    configuration,
    plan,
    run,
    lse: lse.words,
    clusters: Math.min(plan.clusters, batch * heads * tilesOfHead),
    out: new Uint16Array(outBytes.buffer, 0, outValues),
  };
}
