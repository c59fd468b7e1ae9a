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

/** Dimensions of the memory of a pair of blocks, and numbers of elements in it. */
function pairSizes(recipe: BackwardRecipe, { qkDim, vDim }: BackwardDimensions) {
  const { queries: blockQueries, keys: blockKeys } = recipe.tiling;
  const inner = filledBackwardDim(recipe, qkDim);
  const outInner = filledBackwardDim(recipe, vDim);
  return {
    blockQueries,
    blockKeys,
    inner,
    outInner,
    pair: blockKeys * blockQueries,
    keys: blockKeys * inner,
    values: blockKeys * outInner,
    queries: blockQueries * inner,
    dout: blockQueries * outInner,
  };
}

type PairSizes = ReturnType<typeof pairSizes>;

/** Bytes of the memory: bit patterns take 2 bytes, fp32 numbers 4, packed rows 8 and packed columns 6. */
function pairBytes({ pair, keys, values, queries, dout, blockQueries }: PairSizes): number {
  return (
    (2 + 2 + 8 + 8 + 4) * keys +
    (2 + 8 + 4) * values +
    (2 + 6 + 6 + 4) * queries +
    (2 + 6 + 6) * dout +
    (4 + 4 + 4 + 2 + 2 + 8 + 8 + 6) * pair +
    16 * blockQueries +
    tableBytes
  );
}

/** Places everything that the stages of a pair of blocks work on, apart from the struct. */
function placeWords(recipe: BackwardRecipe, size: PairSizes, kernels: BackwardKernels) {
  const allocator = createAllocator(kernels.memory, pairBytes(size));
  const { allocate, place } = allocator;
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
  return {
    allocator,
    sums,
    encoding: place(packOperandEncoding(recipe.format)),
    keys: patterns(size.keys),
    keysTransposed: patterns(size.keys),
    values: patterns(size.values),
    queries: patterns(size.queries),
    dout: patterns(size.dout),
    weights: patterns(size.pair),
    derivatives: patterns(size.pair),
    packed: {
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
    },
    scores: floats(size.pair),
    outputDerivatives: floats(size.pair),
    slopes: floats(size.pair),
    dk: floats(size.keys),
    dv: floats(size.values),
    dqTransposed: floats(size.queries),
    rows: allocate(16 * size.blockQueries),
  };
}

type PairWords = ReturnType<typeof placeWords>;

/** Places the struct that the steps on elements read; returns its address. */
function placePair(
  { weight, format }: BackwardRecipe,
  { blockKeys, blockQueries }: PairSizes,
  words: PairWords,
): number {
  const { place, struct } = words.allocator;
  const { exp2 } = specialFunctionTables;
  return struct(pairBlock).write({
    keys: blockKeys,
    queries: blockQueries,
    scores: words.scores.address,
    derivatives: words.outputDerivatives.address,
    slopes: words.slopes.address,
    weights: words.weights.address,
    products: words.derivatives.address,
    rows: words.rows,
    scale: weight.scale,
    fusesExponent: weight.isFused,
    flushes: weight.unit === 'ex2.approx.ftz.f32',
    segments: place(packSegments(exp2)),
    squares: place(packSquares()),
    shift: Math.log2(exp2.unitsPerUlp),
    format: place(packConversion(roundingConversions[format])),
  });
}

/** Packs the operands of matrix products, and multiplies them. */
function operandKernels(kernels: BackwardKernels, { encoding, sums }: PairWords) {
  const { packColumns, packTransposedColumns } = kernels;
  return {
    packRows: (from: number, to: number, count: number, length: number): void =>
      kernels.packRows(from, to, count, length, encoding),
    packColumns: (from: number, to: number, count: number, length: number): void =>
      packColumns(from, to, count, length, encoding),
    packTransposedColumns: (from: number, to: number, count: number, length: number): void =>
      packTransposedColumns(from, to, count, length, encoding),
    multiply: (
      a: number,
      b: number,
      c: number,
      ...[m, k, n]: [rows: number, inner: number, columns: number]
    ): number => kernels.multiplyAccumulate(a, b, c, m, k, n, sums),
  };
}

/** The stages of the backward on a pair of blocks, from the products to the gradients. */
function pairStages(
  kernels: BackwardKernels,
  { blockKeys, blockQueries, inner, outInner }: PairSizes,
  words: PairWords,
  pair: number,
): Pick<BackwardEngine, 'begin' | 'products' | 'elements' | 'gradients'> {
  const { packed, keys, keysTransposed, values, queries, dout, scores, outputDerivatives } = words;
  const { weights, derivatives, dk, dv, dqTransposed } = words;
  const { packRows, packColumns, packTransposedColumns, multiply } = operandKernels(kernels, words);
  return {
    begin: () => {
      packRows(keys.address, packed.keys, blockKeys, inner);
      packRows(keysTransposed.address, packed.keysTransposed, inner, blockKeys);
      packRows(values.address, packed.values, blockKeys, outInner);
      dk.view.fill(0);
      dv.view.fill(0);
    },
    products: () => {
      packTransposedColumns(queries.address, packed.queryColumns, inner, blockQueries);
      packTransposedColumns(dout.address, packed.doutColumns, outInner, blockQueries);
      scores.view.fill(0);
      outputDerivatives.view.fill(0);
      multiply(packed.keys, packed.queryColumns, scores.address, blockKeys, inner, blockQueries);
      const { address } = outputDerivatives;
      multiply(packed.values, packed.doutColumns, address, blockKeys, outInner, blockQueries);
    },
    elements: (sloped) => kernels.elementSteps(pair, sloped),
    gradients: (continues) => {
      packRows(weights.address, packed.weights, blockKeys, blockQueries);
      packRows(derivatives.address, packed.derivatives, blockKeys, blockQueries);
      packColumns(derivatives.address, packed.derivativeColumns, blockKeys, blockQueries);
      packColumns(queries.address, packed.queryRows, blockQueries, inner);
      packColumns(dout.address, packed.doutRows, blockQueries, outInner);
      multiply(packed.weights, packed.doutRows, dv.address, blockKeys, blockQueries, outInner);
      multiply(packed.derivatives, packed.queryRows, dk.address, blockKeys, blockQueries, inner);
      if (!continues) dqTransposed.view.fill(0);
      const [a, b] = [packed.keysTransposed, packed.derivativeColumns];
      multiply(a, b, dqTransposed.address, inner, blockKeys, blockQueries);
    },
  };
}

/** An instance of the module with the memory of one pair of blocks: some megabytes, whatever the problem's size. */
export function createBackwardEngine(
  recipe: BackwardRecipe,
  dimensions: BackwardDimensions,
): BackwardEngine {
  const size = pairSizes(recipe, dimensions);
  const { blockQueries } = size;
  const kernels = instantiate();
  const words = placeWords(recipe, size, kernels);
  const pair = placePair(recipe, size, words);
  const { buffer } = kernels.memory;
  const rowWords = 4 * blockQueries;
  return {
    inner: size.inner,
    outInner: size.outInner,
    keys: words.keys.view,
    keysTransposed: words.keysTransposed.view,
    values: words.values.view,
    queries: words.queries.view,
    dout: words.dout.view,
    logSumExp2: new Float32Array(buffer, words.rows, blockQueries),
    productSums: new Float32Array(buffer, words.rows + rowWords, blockQueries),
    firstKey: new Int32Array(buffer, words.rows + 2 * rowWords, blockQueries),
    endKey: new Int32Array(buffer, words.rows + 3 * rowWords, blockQueries),
    scores: words.scores.view,
    slopes: words.slopes.view,
    dk: words.dk.view,
    dv: words.dv.view,
    dqTransposed: words.dqTransposed.view,
    ...pairStages(kernels, size, words, pair),
  };
}
