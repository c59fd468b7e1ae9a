import { packOperandEncoding } from '../../../src/hardware/index.js';
import { createAllocator } from '../../../src/reuse.js';
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

/**
 * An instance of the module with the memory of one tile: some megabytes, whatever the problem's size.
 */
export function createForwardEngine(
  recipe: Recipe,
  { qkDim, vDim }: TileDimensions,
): ForwardEngine {
  const { format } = recipe;
  const { queries: tileQueries, keys: blockKeys } = recipe.tiling;
  const sumsPerRow = rowSumLaws[recipe.rowSum].columnsOfThreads(blockKeys).length;
  const bits = bitsOf(format);
  const Patterns = bits === 8 ? Uint8Array : Uint16Array;
  const inner = filledDim(recipe, qkDim);
  const outColumns = 8 * Math.ceil(vDim / 8);
  const size = {
    queries: tileQueries * inner,
    keys: blockKeys * inner,
    values: blockKeys * outColumns,
    scores: tileQueries * blockKeys,
    out: tileQueries * outColumns,
  };
  // Bit patterns take 2 bytes, fp32 numbers 4, packed rows 8 and packed columns 6.
  const bytes =
    (2 + 8) * size.queries +
    (2 + 6) * (size.keys + size.values) +
    (4 + 2 + 8) * size.scores +
    (4 + 2) * size.out +
    tileQueries * 48 +
    parameterTableBytes;
  const kernels = instantiateForward();
  const stages = stagesOf(kernels, recipe);
  const allocator = createAllocator(kernels.memory, bytes);
  const { allocate, place, struct } = allocator;
  const sums = placeFusedSums(allocator, recipe.tensorCore);
  const { buffer } = kernels.memory;

  function patterns(count: number): Words<InputPatterns> {
    const address = allocate((bits / 8) * count);
    return { address, view: new Patterns(buffer, address, count) };
  }
  function results(count: number): Words<Uint16Array> {
    const address = allocate(2 * count);
    return { address, view: new Uint16Array(buffer, address, count) };
  }
  function integers(count: number): Words<Int32Array> {
    const address = allocate(4 * count);
    return { address, view: new Int32Array(buffer, address, count) };
  }
  function floats(count: number): Words<Float32Array> {
    const address = allocate(4 * count);
    return { address, view: new Float32Array(buffer, address, count) };
  }

  const encoding = place(packOperandEncoding(format));
  const counters = integers(counterCount);
  const queries = patterns(size.queries);
  const keys = patterns(size.keys);
  const values = patterns(size.values);
  const weights = patterns(size.scores);
  const result = results(size.out);
  const packedQueries = allocate(8 * size.queries);
  const packedKeys = allocate(6 * size.keys);
  const packedValues = allocate(6 * size.values);
  const packedWeights = allocate(8 * size.scores);
  const scores = floats(size.scores);
  const out = floats(size.out);
  const visible = integers(2 * tileQueries);
  const maxima = floats(tileQueries);
  const rowSums = floats(tileQueries * sumsPerRow);
  const alphas = floats(tileQueries);
  const rescales = integers(tileQueries);
  const lse = floats(tileQueries);
  const tile = struct(forwardTile).write({
    recipe: struct(forwardRecipe).write(forwardRecipeOf(allocator, recipe, counters.address)),
    keys: blockKeys,
    scores: scores.address,
    weights: weights.address,
    visible: visible.address,
    maxima: maxima.address,
    sums: rowSums.address,
    alphas: alphas.address,
    lse: lse.address,
    rescales: rescales.address,
    out: out.address,
    result: result.address,
  });
  let rows = 0;

  return {
    inner,
    outColumns,
    queries: queries.view,
    keys: keys.view,
    values: values.view,
    visible: visible.view,
    result: result.view,
    sums: out.view,
    lse: lse.view,
    blockScores: scores.view,
    maxima: maxima.view,
    rowSums: rowSums.view,
    rescales: rescales.view,
    counters: counters.view,
    polynomialColumns: polynomialColumnsOf(recipe).filter(Boolean).length,
    begin: (count) => {
      rows = count;
      kernels.packRows(queries.address, packedQueries, rows, inner, encoding);
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
