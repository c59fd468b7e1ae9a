import type { KernelProgramOptions } from '../../kernel-program.js';
import type { SwizzleMode } from '../../../src/machine/index.js';
import type { Problem, ProblemShape } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import { type Fa4Configuration, type Fa4Format, fa4Formats } from '../configuration.js';
import { tileQueries } from '../thread-blocks.js';
import { barrierPlans, type ProgramBarriers } from './barrier-plans.js';

/** Options of a run of the kernel beyond those that change its bits. */
export interface ProgramOptions extends Pick<
  KernelProgramOptions,
  'ctas' | 'clusters' | 'isaFences'
> {
  /** Numbers of K/V ring buffers that the load warp, the MMA warp and the layout count; default equal. */
  readonly ring?: Partial<RingDepths>;
}

/** Number of K/V ring buffers that each party assumes. */
export interface RingDepths {
  readonly load: number;
  readonly mma: number;
  readonly layout: number;
}

/** Bytes of shared memory that buffers may take. Source: `_setup_attributes` in flash_fwd_sm100.py. */
const bufferBudget = 224 * 1024;
const mostRingStages = 32;
/** SMs of a B200. */
const multiprocessors = 148;
/** Columns of S of one stage, and of a tile of O. */
export const scoreColumns = 128;
const outputBytes = 2;
/** Possible bytes of a row of a swizzled box, widest first: the first that divides a row of the tile is used. */
const boxWidths = [128, 64, 32];
const supported = ['64', '128', '192,128'];

/** A tile's layout in shared memory: boxes side by side, each with rows of up to 128 bytes. */
export interface TileLayout {
  readonly rows: number;
  /** Bytes of a row of a box, and its elements. */
  readonly boxBytes: number;
  readonly boxColumns: number;
  readonly boxes: number;
  readonly bytes: number;
}

function tileLayout(rows: number, columns: number, elementBytes: number): TileLayout {
  const boxBytes = boxWidths.find((bytes) => (columns * elementBytes) % bytes === 0)!;
  const boxColumns = boxBytes / elementBytes;
  const boxes = columns / boxColumns;
  return { rows, boxBytes, boxColumns, boxes, bytes: rows * boxBytes * boxes };
}

/** All facts about a run of the program that do not change while it runs. */
export interface ProgramPlan {
  readonly problem: Problem;
  readonly shape: ProblemShape;
  readonly configuration: Fa4Configuration;
  readonly format: Fa4Format;
  readonly elementBytes: 1 | 2;
  readonly ctas: 1 | 2;
  readonly clusters: number;
  /** Tiles of queries that a CTA works on at a time. */
  readonly stages: 1 | 2;
  readonly isaFences: boolean;
  readonly ring: RingDepths;
  /** Layouts of Q, and of one CTA's parts of K, V and O. */
  readonly q: TileLayout;
  readonly k: TileLayout;
  readonly v: TileLayout;
  readonly o: TileLayout;
  /** Whether O is staged where Q lies: shared memory is short. */
  readonly overlapsQueries: boolean;
  /** Whether the three buffers of the ring have room for K, V, K and K, K, V by turns. */
  readonly isRingUneven: boolean;
  readonly addresses: ProgramAddresses;
  readonly barriers: ProgramBarriers;
  /** Columns of tensor memory, by stage. */
  readonly columns: { readonly s: number[]; readonly p: number[]; readonly o: number[] };
}

/** Offsets in shared memory. */
interface ProgramAddresses {
  readonly tensorAddress: number;
  /** [stage][128] fp32: α, then the row sums. */
  readonly scale: number;
  /** [stage][128] fp32: the row maxima at the end. */
  readonly maxima: number;
  readonly q: number[];
  readonly o: number[];
  /** The K/V ring, and the distance of its buffers. */
  readonly ring: number;
  readonly ringStride: number;
  /** Distance by which the middle buffer of an uneven ring moves. */
  readonly ringOffset: number;
}

/** @throws RequestError unless the machine runs the kernel for these dimensions */
function checkDimensions({ qkDim, vDim }: ProblemShape): void {
  const name = qkDim === vDim ? String(qkDim) : `${qkDim},${vDim}`;
  if (!supported.includes(name))
    throw new RequestError(
      `head dimension ${name}; the machine runs the program for 64, 128 and 192 with values of 128`,
    );
}

/** @throws RequestError unless the machine runs the kernel with these settings */
function checkConfiguration({ blockKeys, splits }: Fa4Configuration): void {
  if (blockKeys !== scoreColumns)
    throw new RequestError(
      `blockKeys is ${blockKeys}; the machine runs the program for ${scoreColumns}`,
    );
  if (splits !== 1)
    throw new RequestError(`splits is ${splits}; the machine runs the program for 1`);
}

/** Layouts of Q, and of one CTA's parts of K, V and O. */
type TileLayouts = Pick<ProgramPlan, 'q' | 'k' | 'v' | 'o'>;

function tileLayouts({ qkDim, vDim }: ProblemShape, ctas: 1 | 2, elementBytes: 1 | 2): TileLayouts {
  return {
    q: tileLayout(tileQueries, qkDim, elementBytes),
    k: tileLayout(scoreColumns / ctas, qkDim, elementBytes),
    v: tileLayout(scoreColumns, vDim / ctas, elementBytes),
    o: tileLayout(tileQueries, vDim, outputBytes),
  };
}

/** Buffers of the K/V ring that there is room for beside Q and O, and whether they are of two sizes. */
function ringBuffers(
  { q, k, v, o }: TileLayouts,
  stages: number,
  overlapsQueries: boolean,
): { readonly depth: number; readonly isRingUneven: boolean } {
  const queryBytes = stages * q.bytes;
  const outBytes = stages * o.bytes;
  const room =
    bufferBudget - (overlapsQueries ? Math.max(queryBytes, outBytes) : queryBytes + outBytes);
  const even = Math.min(Math.floor(room / Math.max(k.bytes, v.bytes)), mostRingStages);
  // Two buffers of K's size leave room for one of V's.
  const isRingUneven = k.bytes > v.bytes && even === 2;
  return { depth: isRingUneven ? 3 : even, isRingUneven };
}

/** Addresses before shared memory is laid out. */
function openAddresses({ k, v }: TileLayouts, isRingUneven: boolean): ProgramAddresses {
  return {
    tensorAddress: -1,
    scale: -1,
    maxima: -1,
    q: [],
    o: [],
    ring: -1,
    ringStride: isRingUneven ? (k.bytes + v.bytes) / 2 : Math.max(k.bytes, v.bytes),
    ringOffset: isRingUneven ? (k.bytes - v.bytes) / 2 : 0,
  };
}

function tensorColumns(stages: number, vDim: number): ProgramPlan['columns'] {
  const columnsFrom = (first: number, step: number): number[] =>
    Array.from({ length: stages }, (_, stage) => first + stage * step);
  return {
    s: columnsFrom(0, scoreColumns),
    p: columnsFrom(scoreColumns / 2, scoreColumns),
    o: columnsFrom(2 * scoreColumns, vDim),
  };
}

/**
 * The plan of the kernel's run on the problem, laid out in memory. Source: `__init__`,
 * `_setup_attributes` and `SharedStorage` in flash_fwd_sm100.py of Dao-AILab/flash-attention.
 *
 * @throws RequestError for problems that the program does not run: other head dimensions, block sizes
 *   other than 128, splits
 */
export function planProgram(
  problem: Problem,
  shape: ProblemShape,
  configuration: Fa4Configuration,
  chosenCtas: 1 | 2,
  options: ProgramOptions = {},
): ProgramPlan {
  checkDimensions(shape);
  checkConfiguration(configuration);
  const ctas = options.ctas ?? chosenCtas;
  const format = problem.q.format as Fa4Format;
  const elementBytes = fa4Formats[format].bits === 8 ? 1 : 2;
  const stages = shape.queries > tileQueries ? 2 : 1;
  const layouts = tileLayouts(shape, ctas, elementBytes);
  const overlapsQueries = shape.qkDim === 192;
  const { depth, isRingUneven } = ringBuffers(layouts, stages, overlapsQueries);
  const ring = { load: depth, mma: depth, layout: depth, ...options.ring };
  return {
    problem,
    shape,
    configuration,
    format,
    elementBytes,
    ctas,
    stages,
    ring,
    clusters: options.clusters ?? Math.floor(multiprocessors / ctas),
    isaFences: options.isaFences ?? false,
    ...layouts,
    overlapsQueries,
    isRingUneven,
    barriers: barrierPlans(stages, Math.max(ring.load, ring.mma, ring.layout), ctas),
    addresses: openAddresses(layouts, isRingUneven),
    columns: tensorColumns(stages, shape.vDim),
  };
}

/** The swizzle of boxes with rows of `boxBytes` bytes. */
export function swizzleOf(boxBytes: number): SwizzleMode {
  return boxBytes === 128 ? '128B' : boxBytes === 64 ? '64B' : '32B';
}
