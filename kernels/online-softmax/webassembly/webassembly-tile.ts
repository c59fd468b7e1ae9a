import { bitsOf, type InputPatterns } from '../units.js';
import { blockMmas, type ForwardTile, type TileDimensions } from '../query-tiles.js';
import { maskInterrupted, seesAKey } from '../key-blocks.js';
import { changeScores } from '../score-change.js';
import { naturalScale, type Recipe } from '../recipe.js';
import { recipeSteps } from '../steps.js';
import { createForwardEngine } from './engine.js';

/** Rows of `dim` elements into rows of `stride`; the elements beyond `dim` are left as they are. */
function copyRows(source: InputPatterns, dim: number, target: InputPatterns, stride: number): void {
  if (dim === stride) target.set(source);
  else
    for (let row = 0; row * dim < source.length; row++)
      target.set(source.subarray(row * dim, (row + 1) * dim), row * stride);
}

/** Whether the WebAssembly can compute a recipe: one thread a row as in FlashAttention-4, or a quad. */
export function fitsWebAssembly(recipe: Recipe): boolean {
  const { format, exponential, exponent, rescale, rowSum, values, finish } = recipe;
  if (values.sum !== 'chain' || finish.normalise !== 'at-the-end') return false;
  if (rowSum === 'packed')
    return (
      exponential.unit === 'ex2.approx.ftz.f32' &&
      exponent.isFused &&
      rescale.of === 'warps' &&
      rescale.checksInfinity &&
      finish.reciprocal === 'rcp.approx.ftz.f32' &&
      naturalScale(recipe) === null &&
      finish.emptyLogSumExp === -Infinity
    );
  return (
    rowSum === 'quad' &&
    bitsOf(format) === 16 &&
    exponential.polynomial === null &&
    rescale.of === 'rows' &&
    rescale.threshold === 0 &&
    naturalScale(recipe) !== null
  );
}

/**
 * The forward of a recipe on one tile in WebAssembly: for all inputs the bits of
 * `createPlainForwardTile`. Each call makes an instance with the memory of one tile, some megabytes;
 * make one per thread and use it for many tiles.
 */
export function createForwardTile(recipe: Recipe, dimensions: TileDimensions): ForwardTile {
  const { qkDim, vDim } = dimensions;
  const { keys: blockKeys } = recipe.tiling;
  const { productsPerSum } = recipe.tensorCore;
  const engine = createForwardEngine(recipe, dimensions);
  const { inner, outColumns, polynomialColumns } = engine;
  const { scoreChange } = recipe;
  const { withSink } = recipeSteps(recipe);
  let rows = 0;
  let logit = -Infinity;
  let blocks = 0;
  let hasSeenKeys = false;
  /** The columns of the output without those that pad it. */
  function outputColumns<Elements extends Uint16Array | Float32Array>(
    source: Elements,
    out: Elements,
  ): Elements {
    for (let row = 0; row < rows; row++)
      out.set(source.subarray(row * outColumns, row * outColumns + vDim), row * vDim);
    return out;
  }

  /** Adds the sink to every row. Kernels with a sink have one sum for each row. */
  function addSink(): void {
    if (logit === -Infinity) return;
    const { maxima, rowSums } = engine;
    for (let row = 0; row < rows; row++) {
      const { maximum, sum } = withSink(maxima[row], rowSums[row], logit);
      maxima[row] = maximum;
      rowSums[row] = sum;
    }
  }

  /** Results of the tile in the engine, beside its output. */
  function statistics() {
    const [rowRescales, rowRescalesSkipped, warpRescales, warpRescalesSkipped] = engine.counters;
    return {
      lse: engine.lse.slice(0, rows),
      rescales: engine.rescales.slice(0, rows),
      counters: {
        rowRescales,
        rowRescalesSkipped,
        warpRescales,
        warpRescalesSkipped,
        polynomialLanes: blocks * rows * polynomialColumns,
        hardwareLanes: blocks * rows * (blockKeys - polynomialColumns),
        mmas: blocks * blockMmas(inner, blockKeys, vDim, productsPerSum),
      },
    };
  }

  return {
    begin: (queries, count, sink) => {
      rows = count;
      logit = sink;
      blocks = 0;
      hasSeenKeys = false;
      copyRows(queries, qkDim, engine.queries, inner);
      engine.begin(rows);
    },
    block: (block, keys, values) => {
      if (block.keys < blockKeys) [engine.keys, engine.values].forEach((view) => view.fill(0));
      copyRows(keys, qkDim, engine.keys, inner);
      copyRows(values, vDim, engine.values, outColumns);
      block.visible.forEach(({ begin, end }, row) => engine.visible.set([begin, end], 2 * row));
      engine.packBlock();
      engine.scores();
      if (scoreChange !== null)
        changeScores(engine.blockScores.subarray(0, rows * blockKeys), scoreChange, block);
      maskInterrupted(engine.blockScores, block.interrupted, blockKeys);
      engine.softmax(blocks === 0, hasSeenKeys);
      if (blocks > 0) engine.rescale(hasSeenKeys);
      engine.output();
      blocks++;
      hasSeenKeys ||= seesAKey(block);
    },
    finish: () => {
      addSink();
      engine.normalise();
      engine.round();
      return { out: outputColumns(engine.result, new Uint16Array(rows * vDim)), ...statistics() };
    },
    finishPartial: () => {
      addSink();
      engine.normalise();
      return { out: outputColumns(engine.sums, new Float32Array(rows * vDim)), ...statistics() };
    },
  };
}
