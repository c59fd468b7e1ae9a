import { bitsOf, type InputPatterns } from '../units.js';
import { blockMmas, type ForwardTile, type TileDimensions } from '../query-tiles.js';
import { maskInterrupted, seesAKey, type KeyBlock } from '../key-blocks.js';
import { changeScores } from '../score-change.js';
import { naturalScale, type Recipe } from '../recipe.js';
import { recipeSteps, type ForwardSteps } from '../steps.js';
import { createForwardEngine, type ForwardEngine } from './engine.js';

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

/** Masks and changes the scores of a block in the engine, as the recipe does. */
function changeBlockScores(
  { blockScores }: ForwardEngine,
  { scoreChange, tiling }: Recipe,
  block: KeyBlock,
  rows: number,
): void {
  if (scoreChange !== null)
    changeScores(blockScores.subarray(0, rows * tiling.keys), scoreChange, block);
  maskInterrupted(blockScores, block.interrupted, tiling.keys);
}

/** Reads the results of a tile from the engine. */
class TileResults {
  readonly #engine: ForwardEngine;
  readonly #recipe: Recipe;
  readonly #vDim: number;
  readonly #withSink: ForwardSteps['withSink'];

  constructor(engine: ForwardEngine, recipe: Recipe, vDim: number) {
    this.#engine = engine;
    this.#recipe = recipe;
    this.#vDim = vDim;
    this.#withSink = recipeSteps(recipe).withSink;
  }

  /** Adds a sink of this logit to every row; none at −∞. Kernels with a sink have one sum for each row. */
  addSink(logit: number, rows: number): void {
    if (logit === -Infinity) return;
    const { maxima, rowSums } = this.#engine;
    for (let row = 0; row < rows; row++) {
      const { maximum, sum } = this.#withSink(maxima[row], rowSums[row], logit);
      maxima[row] = maximum;
      rowSums[row] = sum;
    }
  }

  /** The columns of the output without those that pad it. */
  output<Elements extends Uint16Array | Float32Array>(
    source: Elements,
    out: Elements,
    rows: number,
  ): Elements {
    const { outColumns } = this.#engine;
    const vDim = this.#vDim;
    for (let row = 0; row < rows; row++)
      out.set(source.subarray(row * outColumns, row * outColumns + vDim), row * vDim);
    return out;
  }

  /** Results of a tile of so many blocks, beside its output. */
  statistics(rows: number, blocks: number) {
    const { counters, lse, rescales, inner, polynomialColumns } = this.#engine;
    const { tiling, tensorCore } = this.#recipe;
    const [rowRescales, rowRescalesSkipped, warpRescales, warpRescalesSkipped] = counters;
    return {
      lse: lse.slice(0, rows),
      rescales: rescales.slice(0, rows),
      counters: {
        rowRescales,
        rowRescalesSkipped,
        warpRescales,
        warpRescalesSkipped,
        polynomialLanes: blocks * rows * polynomialColumns,
        hardwareLanes: blocks * rows * (tiling.keys - polynomialColumns),
        mmas: blocks * blockMmas(inner, tiling.keys, this.#vDim, tensorCore.productsPerSum),
      },
    };
  }
}

/**
 * The forward of a recipe on one tile in WebAssembly: for all inputs the bits of
 * `createPlainForwardTile`. Each call makes an instance with the memory of one tile, some megabytes;
 * make one per thread and use it for many tiles.
 */
export function createForwardTile(recipe: Recipe, dimensions: TileDimensions): ForwardTile {
  const { qkDim, vDim } = dimensions;
  const engine = createForwardEngine(recipe, dimensions);
  const results = new TileResults(engine, recipe, vDim);
  let rows = 0;
  let logit = -Infinity;
  let blocks = 0;
  let hasSeenKeys = false;
  return {
    begin: (queries, count, sink) => {
      rows = count;
      logit = sink;
      blocks = 0;
      hasSeenKeys = false;
      copyRows(queries, qkDim, engine.queries, engine.inner);
      engine.begin(rows);
    },
    block: (block, keys, values) => {
      if (block.keys < recipe.tiling.keys)
        [engine.keys, engine.values].forEach((view) => view.fill(0));
      copyRows(keys, qkDim, engine.keys, engine.inner);
      copyRows(values, vDim, engine.values, engine.outColumns);
      block.visible.forEach(({ begin, end }, row) => engine.visible.set([begin, end], 2 * row));
      engine.packBlock();
      engine.scores();
      changeBlockScores(engine, recipe, block, rows);
      engine.softmax(blocks === 0, hasSeenKeys);
      if (blocks > 0) engine.rescale(hasSeenKeys);
      engine.output();
      blocks++;
      hasSeenKeys ||= seesAKey(block);
    },
    finish: () => {
      results.addSink(logit, rows);
      engine.normalise();
      engine.round();
      const out = results.output(engine.result, new Uint16Array(rows * vDim), rows);
      return { out, ...results.statistics(rows, blocks) };
    },
    finishPartial: () => {
      results.addSink(logit, rows);
      engine.normalise();
      const out = results.output(engine.sums, new Float32Array(rows * vDim), rows);
      return { out, ...results.statistics(rows, blocks) };
    },
  };
}
