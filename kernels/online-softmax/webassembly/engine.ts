import { packOperandEncoding } from '../../../src/hardware/index.js';
import { createAllocator, type Allocator } from '../../../src/reuse.js';
import { placeFusedSums } from '../../../src/simd/index.js';
import { bitsOf, type InputPatterns } from '../units.js';
import type { TileDimensions } from '../query-tiles.js';
import { forwardRecipe, forwardTile } from './forward.generated.js';
import { filledDim, polynomialColumnsOf, type Recipe } from '../recipe.js';
import { rowSumLaws } from '../row-sums.js';
import {
  type ForwardKernels,
  forwardRecipeOf,
  instantiateForward,
  parameterTableBytes,
  type StageKernels,
} from './module.js';

/** Numbers in WebAssembly memory, and where they are. */
interface Words<View> {
  readonly address: number;
  readonly view: View;
}

/**
 * The memory of one tile of queries against one block of keys, and the stages of the forward on it. A
 * stage works on the results that the earlier ones left in that memory; nothing is copied between
 * them.
 */
export interface ForwardEngine {
  /** qkDim and vDim as they lie in memory: rounded up to multiples that the kernels take. */
  readonly inner: number;
  readonly outColumns: number;
  readonly queries: InputPatterns;
  readonly keys: InputPatterns;
  readonly values: InputPatterns;
  /** Begin and end of the columns that each row sees. */
  readonly visible: Int32Array;
  /** [rows × outColumns], after `round`. */
  readonly result: Uint16Array;
  /** [rows × outColumns]: the output in fp32, not normalised before `normalise`. */
  readonly sums: Float32Array;
  readonly lse: Float32Array;
  /** [rows × block keys], after `scores`. */
  readonly blockScores: Float32Array;
  /** The maximum in use of each row, and the sums of its threads. */
  readonly maxima: Float32Array;
  readonly rowSums: Float32Array;
  readonly rescales: Int32Array;
  /** Rescaled rows, rows whose rescale was skipped, rescaled warps, warps skipped. */
  readonly counters: Int32Array;
  /** Number of a block's columns that the polynomial computes. */
  readonly polynomialColumns: number;
  /** Packs the queries of `rows` rows and clears the sums over the blocks. */
  readonly begin: (rows: number) => void;
  readonly packBlock: () => void;
  /** S = Q·Kᵀ. */
  readonly scores: () => void;
  /** P, the row sums and α; `isCounted`: whether rescales count. */
  readonly softmax: (isFirst: boolean, isCounted: boolean) => void;
  readonly rescale: (isCounted: boolean) => void;
  /** O += P·V. */
  readonly output: () => void;
  /** Divides the output by the row sums, in fp32, and computes the LSE. */
  readonly normalise: () => void;
  /** Rounds the output to the result. */
  readonly round: () => void;
}

const counterCount = 4;

/** The stages of a recipe's row sums. */
function stagesOf(kernels: ForwardKernels, { rowSum }: Recipe): StageKernels {
  if (rowSum === 'packed') return kernels;
  return {
    softmaxStep: kernels.quadSoftmaxStep,
    rescaleOutput: kernels.rescaleRows,
    normalise: kernels.quadNormalise,
  };
}

/** Dimensions of a tile's memory, and numbers of elements in it. */
function tileSizes(recipe: Recipe, { qkDim, vDim }: TileDimensions) {
  const { queries: tileQueries, keys: blockKeys } = recipe.tiling;
  const inner = filledDim(recipe, qkDim);
  const outColumns = 8 * Math.ceil(vDim / 8);
  return {
    tileQueries,
    blockKeys,
    inner,
    outColumns,
    sumsPerRow: rowSumLaws[recipe.rowSum].columnsOfThreads(blockKeys).length,
    queries: tileQueries * inner,
    keys: blockKeys * inner,
    values: blockKeys * outColumns,
    scores: tileQueries * blockKeys,
    out: tileQueries * outColumns,
  };
}

type TileSizes = ReturnType<typeof tileSizes>;

/** Bytes of the memory: bit patterns take 2 bytes, fp32 numbers 4, packed rows 8 and packed columns 6. */
function tileBytes({ queries, keys, values, scores, out, tileQueries }: TileSizes): number {
  return (
    (2 + 8) * queries +
    (2 + 6) * (keys + values) +
    (4 + 2 + 8) * scores +
    (4 + 2) * out +
    tileQueries * 48 +
    parameterTableBytes
  );
}

/** Places numbers in the memory of an allocator. */
function wordPlaces({ allocate }: Allocator, buffer: ArrayBuffer, bits: number) {
  const Patterns = bits === 8 ? Uint8Array : Uint16Array;
  return {
    patterns: (count: number): Words<InputPatterns> => {
      const address = allocate((bits / 8) * count);
      return { address, view: new Patterns(buffer, address, count) };
    },
    results: (count: number): Words<Uint16Array> => {
      const address = allocate(2 * count);
      return { address, view: new Uint16Array(buffer, address, count) };
    },
    integers: (count: number): Words<Int32Array> => {
      const address = allocate(4 * count);
      return { address, view: new Int32Array(buffer, address, count) };
    },
    floats: (count: number): Words<Float32Array> => {
      const address = allocate(4 * count);
      return { address, view: new Float32Array(buffer, address, count) };
    },
  };
}

/** Places everything that the stages of a tile work on. */
function placeTile(recipe: Recipe, size: TileSizes, kernels: ForwardKernels) {
  const { tileQueries, sumsPerRow } = size;
  const allocator = createAllocator(kernels.memory, tileBytes(size));
  const { allocate, place, struct } = allocator;
  const sums = placeFusedSums(allocator, recipe.tensorCore);
  const places = wordPlaces(allocator, kernels.memory.buffer, bitsOf(recipe.format));
  const { patterns, results, integers, floats } = places;
  const words = {
    sums,
    encoding: place(packOperandEncoding(recipe.format)),
    counters: integers(counterCount),
    queries: patterns(size.queries),
    keys: patterns(size.keys),
    values: patterns(size.values),
    weights: patterns(size.scores),
    result: results(size.out),
    packedQueries: allocate(8 * size.queries),
    packedKeys: allocate(6 * size.keys),
    packedValues: allocate(6 * size.values),
    packedWeights: allocate(8 * size.scores),
    scores: floats(size.scores),
    out: floats(size.out),
    visible: integers(2 * tileQueries),
    maxima: floats(tileQueries),
    rowSums: floats(tileQueries * sumsPerRow),
    alphas: floats(tileQueries),
    rescales: integers(tileQueries),
    lse: floats(tileQueries),
  };
  const recipeValues = forwardRecipeOf(allocator, recipe, words.counters.address);
  const tile = struct(forwardTile).write({
    recipe: struct(forwardRecipe).write(recipeValues),
    keys: size.blockKeys,
    scores: words.scores.address,
    weights: words.weights.address,
    visible: words.visible.address,
    maxima: words.maxima.address,
    sums: words.rowSums.address,
    alphas: words.alphas.address,
    lse: words.lse.address,
    rescales: words.rescales.address,
    out: words.out.address,
    result: words.result.address,
  });
  return { ...words, tile };
}

/** The stages of the forward on a tile. */
type TileStages = Pick<
  ForwardEngine,
  'begin' | 'packBlock' | 'scores' | 'softmax' | 'rescale' | 'output' | 'normalise' | 'round'
>;

function tileStages(
  kernels: ForwardKernels,
  stages: StageKernels,
  memory: ReturnType<typeof placeTile>,
  { inner, outColumns, blockKeys }: TileSizes,
): TileStages {
  const { tile, encoding, sums, queries, keys, values, scores, weights, out } = memory;
  const { packedQueries, packedKeys, packedValues, packedWeights } = memory;
  let rows = 0;
  return {
    begin: (count) => {
      rows = count;
      kernels.packRows(queries.address, packedQueries, rows, inner, encoding);
      const { rowSums, rescales, counters, maxima } = memory;
      [out.view, rowSums.view, rescales.view, counters.view].forEach((view) => view.fill(0));
      maxima.view.fill(-Infinity);
    },
    packBlock: () => {
      kernels.packTransposedColumns(keys.address, packedKeys, inner, blockKeys, encoding);
      kernels.packColumns(values.address, packedValues, blockKeys, outColumns, encoding);
    },
    scores: () => {
      scores.view.fill(0);
      const { address } = scores;
      kernels.multiplyAccumulate(packedQueries, packedKeys, address, rows, inner, blockKeys, sums);
    },
    softmax: (isFirst, isCounted) => {
      stages.softmaxStep(tile, rows, isFirst, isCounted);
      kernels.packRows(weights.address, packedWeights, rows, blockKeys, encoding);
    },
    rescale: (isCounted) => stages.rescaleOutput(tile, rows, outColumns, isCounted),
    output: () => {
      const [a, b] = [packedWeights, packedValues];
      kernels.multiplyAccumulate(a, b, out.address, rows, blockKeys, outColumns, sums);
    },
    normalise: () => stages.normalise(tile, rows, outColumns),
    round: () => kernels.roundOutput(tile, rows * outColumns),
  };
}

/**
 * An instance of the module with the memory of one tile: some megabytes, whatever the problem's size.
 */
export function createForwardEngine(recipe: Recipe, dimensions: TileDimensions): ForwardEngine {
  const size = tileSizes(recipe, dimensions);
  const kernels = instantiateForward();
  const memory = placeTile(recipe, size, kernels);
  return {
    inner: size.inner,
    outColumns: size.outColumns,
    queries: memory.queries.view,
    keys: memory.keys.view,
    values: memory.values.view,
    visible: memory.visible.view,
    result: memory.result.view,
    sums: memory.out.view,
    lse: memory.lse.view,
    blockScores: memory.scores.view,
    maxima: memory.maxima.view,
    rowSums: memory.rowSums.view,
    rescales: memory.rescales.view,
    counters: memory.counters.view,
    polynomialColumns: polynomialColumnsOf(recipe).filter(Boolean).length,
    ...tileStages(kernels, stagesOf(kernels, recipe), memory, size),
  };
}
