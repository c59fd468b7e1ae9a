import {
  packConversion,
  packOperandEncoding,
  packSegments,
  packSquares,
  specialFunctionTables,
} from '../../../../src/hardware/index.js';
import { createAllocator, instantiator } from '../../../../src/reuse.js';
import { placeFusedSums, type TensorCoreKernels } from '../../../../src/simd/index.js';
import { roundingConversions } from '../../units.js';
import type { BackwardDimensions } from '../key-block.js';
import { filledBackwardDim, type BackwardRecipe } from '../recipe.js';
import { binary, pairBlock } from './backward.generated.js';

/** Exports of the module; addresses are of its memory, `block` that of a `PairBlock`. Its source documents the layouts. */
interface BackwardKernels extends TensorCoreKernels {
  elementSteps(block: number, isSloped: boolean): void;
}

const instantiate = instantiator<BackwardKernels>(binary, 'the backward');

/** Bytes of the tables that the struct of a block points to, with room to spare. */
const tableBytes = 2 ** 18 + 2 ** 14;

/**
 * The memory of one block of keys against one block of queries, and the stages of the backward on it. A stage works
 * on the results that the earlier ones left in that memory.
 */
export interface BackwardEngine {
  /** qkDim and vDim filled up to whole instructions. */
  readonly inner: number;
  readonly outInner: number;
  /** Bit patterns: [keys × inner], its transpose [inner × keys], and [keys × outInner]. */
  readonly keys: Uint16Array;
  readonly keysTransposed: Uint16Array;
  readonly values: Uint16Array;
  /** [queries × inner] and [queries × outInner] */
  readonly queries: Uint16Array;
  readonly dout: Uint16Array;
  /** LSE·log2 e and D of each query, and the range of keys that it sees. */
  readonly logSumExp2: Float32Array;
  readonly productSums: Float32Array;
  readonly firstKey: Int32Array;
  readonly endKey: Int32Array;
  /** [keys × queries], after `products`; and the factors of dS. */
  readonly scores: Float32Array;
  readonly slopes: Float32Array;
  /** Sums: [keys × inner], [keys × outInner], and of one pair of blocks [inner × queries]. */
  readonly dk: Float32Array;
  readonly dv: Float32Array;
  readonly dqTransposed: Float32Array;
  /** Packs the keys and values and clears dK and dV. */
  readonly begin: () => void;
  /** S = K·Qᵀ and dP = V·dOᵀ. */
  readonly products: () => void;
  /** P and dS; `sloped`: whether dS is multiplied by the slopes. */
  readonly elements: (sloped: boolean) => void;
  /** dV += Pᵀ·dO, dK += dSᵀ·Q, dQ = dS·K, or dQ += dS·K where its chain `continues`. */
  readonly gradients: (continues: boolean) => void;
}

/** An instance of the module with the memory of one pair of blocks: some megabytes, whatever the problem's size. */
export function createBackwardEngine(
  recipe: BackwardRecipe,
  { qkDim, vDim }: BackwardDimensions,
): BackwardEngine {
  const { tiling, format, weight } = recipe;
  const { queries: blockQueries, keys: blockKeys } = tiling;
  const inner = filledBackwardDim(recipe, qkDim);
  const outInner = filledBackwardDim(recipe, vDim);
  const size = {
    pair: blockKeys * blockQueries,
    keys: blockKeys * inner,
    values: blockKeys * outInner,
    queries: blockQueries * inner,
    dout: blockQueries * outInner,
  };
  // Bit patterns take 2 bytes, fp32 numbers 4, packed rows 8 and packed columns 6.
  const bytes =
    (2 + 2 + 8 + 8 + 4) * size.keys +
    (2 + 8 + 4) * size.values +
    (2 + 6 + 6 + 4) * size.queries +
    (2 + 6 + 6) * size.dout +
    (4 + 4 + 4 + 2 + 2 + 8 + 8 + 6) * size.pair +
    16 * blockQueries +
    tableBytes;
  const kernels = instantiate();
  const allocator = createAllocator(kernels.memory, bytes);
  const { allocate, place, struct } = allocator;
  const sums = placeFusedSums(allocator, recipe.tensorCore);
  const { buffer } = kernels.memory;
  const patterns = (count: number) => {
    const address = allocate(2 * count);
    return { address, view: new Uint16Array(buffer, address, count) };
  };
  const floats = (count: number) => {
    const address = allocate(4 * count);
    return { address, view: new Float32Array(buffer, address, count) };
  };
  const encoding = place(packOperandEncoding(format));

  const keys = patterns(size.keys);
  const keysTransposed = patterns(size.keys);
  const values = patterns(size.values);
  const queries = patterns(size.queries);
  const dout = patterns(size.dout);
  const weights = patterns(size.pair);
  const derivatives = patterns(size.pair);
  const packed = {
    keys: allocate(8 * size.keys),
    keysTransposed: allocate(8 * size.keys),
    values: allocate(8 * size.values),
    queryColumns: allocate(6 * size.queries),
    queryRows: allocate(6 * size.queries),
    doutColumns: allocate(6 * size.dout),
    doutRows: allocate(6 * size.dout),
    weights: allocate(8 * size.pair),
    derivatives: allocate(8 * size.pair),
    derivativeColumns: allocate(6 * size.pair),
  };
  const scores = floats(size.pair);
  const outputDerivatives = floats(size.pair);
  const slopes = floats(size.pair);
  const dk = floats(size.keys);
  const dv = floats(size.values);
  const dqTransposed = floats(size.queries);
  const rows = allocate(16 * blockQueries);
  const rowWords = 4 * blockQueries;
  const { exp2 } = specialFunctionTables;
  const block = struct(pairBlock).write({
    keys: blockKeys,
    queries: blockQueries,
    scores: scores.address,
    derivatives: outputDerivatives.address,
    slopes: slopes.address,
    weights: weights.address,
    products: derivatives.address,
    rows,
    scale: weight.scale,
    fusesExponent: weight.isFused,
    flushes: weight.unit === 'ex2.approx.ftz.f32',
    segments: place(packSegments(exp2)),
    squares: place(packSquares()),
    shift: Math.log2(exp2.unitsPerUlp),
    format: place(packConversion(roundingConversions[format])),
  });

  const packRows = (from: number, to: number, count: number, length: number): void =>
    kernels.packRows(from, to, count, length, encoding);
  const multiply = (
    a: number,
    b: number,
    c: number,
    ...[m, k, n]: [rows: number, inner: number, columns: number]
  ): number => kernels.multiplyAccumulate(a, b, c, m, k, n, sums);

  return {
    inner,
    outInner,
    keys: keys.view,
    keysTransposed: keysTransposed.view,
    values: values.view,
    queries: queries.view,
    dout: dout.view,
    logSumExp2: new Float32Array(buffer, rows, blockQueries),
    productSums: new Float32Array(buffer, rows + rowWords, blockQueries),
    firstKey: new Int32Array(buffer, rows + 2 * rowWords, blockQueries),
    endKey: new Int32Array(buffer, rows + 3 * rowWords, blockQueries),
    scores: scores.view,
    slopes: slopes.view,
    dk: dk.view,
    dv: dv.view,
    dqTransposed: dqTransposed.view,
    begin: () => {
      packRows(keys.address, packed.keys, blockKeys, inner);
      packRows(keysTransposed.address, packed.keysTransposed, inner, blockKeys);
      packRows(values.address, packed.values, blockKeys, outInner);
      dk.view.fill(0);
      dv.view.fill(0);
    },
    products: () => {
      const { packTransposedColumns } = kernels;
      packTransposedColumns(queries.address, packed.queryColumns, inner, blockQueries, encoding);
      packTransposedColumns(dout.address, packed.doutColumns, outInner, blockQueries, encoding);
      scores.view.fill(0);
      outputDerivatives.view.fill(0);
      multiply(packed.keys, packed.queryColumns, scores.address, blockKeys, inner, blockQueries);
      multiply(
        packed.values,
        packed.doutColumns,
        outputDerivatives.address,
        blockKeys,
        outInner,
        blockQueries,
      );
    },
    elements: (sloped) => kernels.elementSteps(block, sloped),
    gradients: (continues) => {
      packRows(weights.address, packed.weights, blockKeys, blockQueries);
      packRows(derivatives.address, packed.derivatives, blockKeys, blockQueries);
      const { packColumns } = kernels;
      packColumns(derivatives.address, packed.derivativeColumns, blockKeys, blockQueries, encoding);
      packColumns(queries.address, packed.queryRows, blockQueries, inner, encoding);
      packColumns(dout.address, packed.doutRows, blockQueries, outInner, encoding);
      multiply(packed.weights, packed.doutRows, dv.address, blockKeys, blockQueries, outInner);
      multiply(packed.derivatives, packed.queryRows, dk.address, blockKeys, blockQueries, inner);
      if (!continues) dqTransposed.view.fill(0);
      multiply(
        packed.keysTransposed,
        packed.derivativeColumns,
        dqTransposed.address,
        inner,
        blockKeys,
        blockQueries,
      );
    },
  };
}
