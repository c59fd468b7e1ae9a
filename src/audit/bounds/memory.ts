import type { WorkingMemories } from '../../../oracles/index.js';
import type { ProblemShape } from '../../problem/index.js';
import { createAllocator, instantiator, type PlacedStruct } from '../../reuse.js';
import {
  binary,
  boundTile,
  elementRow,
  weightRules,
  type ElementRow,
  type WeightRules,
} from './bounds.generated.js';

/** Queries and keys of a tile. */
export const tileRows = 64;

/** Number of the 64 rows of a tile that the loops take for `rows` rows: the next multiple of 4. */
export function paddedRows(rows: number): number {
  return Math.min(tileRows, Math.ceil(rows / 4) * 4);
}

/** Exports of the module; addresses are of its memory, `tile` that of a `BoundTile`. Its source documents the layouts. */
interface BoundKernels {
  readonly memory: WebAssembly.Memory;
  product(a: number, b: number, c: number, rows: number, inner: number, columns: number): void;
  capScores(scores: number, count: number, factor: number): void;
  chainProduct(
    a: number,
    b: number,
    c: number,
    e: number,
    rows: number,
    inner: number,
    step: number,
  ): void;
  loadPanels(keys: number, panels: number, dim: number): void;
  scoreErrors(
    e: number,
    products: number,
    count: number,
    perPartial: number,
    perProduct: number,
  ): void;
  scanScores(tile: number, rows: number, factor: number, binsPerOctave: number): void;
  weigh(tile: number, rows: number, rules: number): void;
  moments(tile: number, rows: number): void;
  narrowMoments(tile: number, rows: number, largest: number): void;
  addUnknown(tile: number, rows: number): void;
  addTile(tile: number, rows: number): void;
  finishElements(tile: number, row: number, local: number, count: number): void;
}

const instantiate = instantiator<BoundKernels>(binary, 'the error bounds');

/** A block of the WebAssembly memory: where it is, and a view of it. */
interface Block {
  readonly address: number;
  readonly view: Float64Array;
}

/** Blocks of [64 × vStride] each: a tile's sums and the squares of its values, and the running sums and bounds. */
const outputBlocks = [
  ...(['tileSum', 'tileSquares', 'valueSquares'] as const),
  ...(['sum', 'squares', 'moved', 'predicted', 'spread'] as const),
  ...(['magnitude', 'accumulated', 'rescaled'] as const),
] as const;
/** Blocks of a number for each row or column of a tile. */
const rowBlocks = [
  ...([
    'maxima',
    'largest',
    'errors',
    'shift',
    'gain',
    'uncertainty',
    'relative',
    'least',
  ] as const),
  ...(['mass', 'slack', 'perTile', 'floor', 'rescale', 'exponential', 'isPolynomial'] as const),
] as const;
/** Blocks of [64 × 64]: raw scores, then weights; their errors; the roundings of weights. */
const squareBlocks = ['scores', 'scoreError', 'rounding', 'known', 'variance'] as const;
/** Blocks of [64 × vStride] in fp32. */
const narrowBlocks = ['narrowValues', 'narrowSizes', 'narrowSquares'] as const;

type Blocks<Name extends string> = { readonly [K in Name]: Block };

/** Numbers that `weigh` gives for each row. */
export const sumsPerRow = 10;

/** Blocks of numbers of a row's elements that `finishElements` takes, works in and fills: see assembly/elements.ts. */
export const elementColumns = 27;
/** Techniques before the output's rounding, and numbers of the form of each. */
export const formCount = 9;
export const formLength = 8;

/** Working memory for one tile of queries against one tile of keys, and the kernels on it. */
export interface BoundMemory
  extends
    Blocks<(typeof outputBlocks)[number]>,
    Blocks<(typeof rowBlocks)[number]>,
    Blocks<(typeof squareBlocks)[number]> {
  readonly kernels: BoundKernels;
  /** The address of the `BoundTile` of all blocks; and structs for what loops are told beside them. */
  readonly tile: number;
  readonly rules: PlacedStruct<WeightRules>;
  readonly elementRow: PlacedStruct<ElementRow>;
  /** vDim rounded up to the kernels' multiple of 8. */
  readonly vStride: number;
  /** [64 × qkDim] each; panels of four keys, [16 × qkDim × 4]; and units of products' errors, [64 × units] and [units × 64]. */
  readonly queries: Block;
  readonly keys: Block;
  readonly keyPanels: Block;
  readonly queryUnits: Block;
  readonly keyUnits: Block;
  /** [64 × vStride] */
  readonly values: Block;
  /** [64 × sumsPerRow] */
  readonly sums: Block;
  /** [elementColumns × vStride], [formCount × formLength], and a bit for each coefficient of a form. */
  readonly elements: Block;
  readonly forms: Block;
  readonly has: { readonly address: number; readonly view: Int32Array };
  readonly low: { readonly address: number; readonly view: Int32Array };
  readonly high: { readonly address: number; readonly view: Int32Array };
  /** Counts of exponents that share a bin, 2^tableBits (u16) for each row. */
  readonly tableBits: number;
  readonly tables: { readonly address: number; readonly view: Uint16Array };
}

const fewestTableBits = 12;
const mostTableBits = 16;

/**
 * Calls `work` with memory for one pair of head dimensions, taken from memories that are used again; returns its result. The
 * size depends on the number of keys only through the tables of counts, and not beyond 8 MB.
 */
export function withBoundMemory<Result>(
  memories: WorkingMemories,
  { qkDim, vDim }: Pick<ProblemShape, 'qkDim' | 'vDim'>,
  keys: number,
  work: (memory: BoundMemory) => Result,
): Result {
  const create = () => createBoundMemory(qkDim, vDim, keys);
  return memories.lend(`bounds ${qkDim} ${vDim} ${tableBitsOf(keys)}`, create, work);
}

function tableBitsOf(keys: number): number {
  const wanted = Math.ceil(Math.log2(Math.max(4 * keys, 1)));
  return Math.min(Math.max(wanted, fewestTableBits), mostTableBits);
}

/** The addresses of blocks, by their names. */
function addressesOf<Name extends string>(
  blocks: Readonly<Record<Name, { readonly address: number }>>,
): Record<Name, number> {
  const entries = Object.entries<{ readonly address: number }>(blocks);
  return Object.fromEntries(entries.map(([name, { address }]) => [name, address])) as Record<
    Name,
    number
  >;
}

/** Allocates for one pair of head dimensions. */
export function createBoundMemory(qkDim: number, vDim: number, keys: number): BoundMemory {
  const kernels = instantiate();
  const vStride = Math.max(8, Math.ceil(vDim / 8) * 8);
  const tableBits = tableBitsOf(keys);
  const tableBytes = 2 * tileRows * 2 ** tableBits;
  const numbers =
    tileRows *
      (5 * (qkDim + 1) +
        vStride * (outputBlocks.length + narrowBlocks.length / 2 + 1) +
        (squareBlocks.length + 1 / 2) * tileRows +
        rowBlocks.length +
        1 +
        sumsPerRow +
        2) +
    elementColumns * vStride +
    formCount * formLength;
  const { allocate, struct } = createAllocator(kernels.memory, 8 * numbers + tableBytes);
  const { buffer } = kernels.memory;
  const block = (length: number): Block => {
    const address = allocate(8 * length);
    return { address, view: new Float64Array(buffer, address, length) };
  };
  const blocks = <Name extends string>(names: readonly Name[], length: number): Blocks<Name> =>
    Object.fromEntries(names.map((name) => [name, block(length)])) as Blocks<Name>;
  const integers = () => {
    const address = allocate(4 * tileRows);
    return { address, view: new Int32Array(buffer, address, tileRows) };
  };
  const tables = allocate(tableBytes);
  const placed = {
    ...blocks(outputBlocks, tileRows * vStride),
    ...blocks(squareBlocks, tileRows * tileRows),
    ...blocks(rowBlocks, tileRows),
    values: block(tileRows * vStride),
    ...blocks(narrowBlocks, (tileRows * vStride) / 2),
    narrowRows: block(tileRows ** 2 / 2),
    ofRows: block(tileRows),
    sums: block(tileRows * sumsPerRow),
    elements: block(elementColumns * vStride),
    forms: block(formCount * formLength),
    has: integers(),
    low: integers(),
    high: integers(),
    tables: { address: tables, view: new Uint16Array(buffer, tables, tableBytes / 2) },
  };
  return {
    kernels,
    tile: struct(boundTile).write({ ...addressesOf(placed), columns: vStride, tableBits }),
    rules: struct(weightRules),
    elementRow: struct(elementRow),
    vStride,
    tableBits,
    ...placed,
    queries: block(tileRows * qkDim),
    keys: block(tileRows * qkDim),
    keyPanels: block(qkDim * tileRows),
    queryUnits: block(tileRows * Math.max(qkDim, 1)),
    keyUnits: block(tileRows * Math.max(qkDim, 1)),
  };
}
