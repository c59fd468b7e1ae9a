import { multiplyFloat32 } from '../../../src/arith/index.js';
import { decode, encode, formats } from '../../../src/formats/index.js';
import { conversions } from '../../../src/hardware/index.js';
import { maskScores, seesAKey, type KeyBlock } from '../key-blocks.js';
import { blockMmas, type ForwardTile, type TileDimensions } from '../query-tiles.js';
import { polynomialColumnsOf, type Recipe } from '../recipe.js';
import { changeScores } from '../score-change.js';
import { recipeSteps, type ForwardSteps, type StepBlock } from '../steps.js';
import { bitsOf, roundingConversions, type InputPatterns, warpRows } from '../units.js';
import { PlainProducts, type PlainProduct } from './plain-products.js';
import { PlainRows } from './plain-rows.js';

const { fp32 } = formats;

function noCounts() {
  return {
    warpRescales: 0,
    warpRescalesSkipped: 0,
    polynomialLanes: 0,
    hardwareLanes: 0,
    mmas: 0,
  };
}

/** Deviations of a plain tile from the kernel, or from its usual means. */
interface PlainTileOptions {
  /** Steps in place of the kernel's. */
  readonly steps?: Partial<ForwardSteps>;
  /** Computes the matrix products; default `tensorCoreProduct`. */
  readonly product?: PlainProduct;
}

/** Each output times its row's factor. */
function scaled(out: Uint32Array, factors: readonly number[], vDim: number): number[] {
  return Array.from(out, (bits, i) =>
    multiplyFloat32(decode(fp32, bits), factors[Math.floor(i / vDim)]),
  );
}

/** One tile on its way through the blocks of keys. */
class PlainTile {
  readonly #recipe: Recipe;
  readonly #dimensions: TileDimensions;
  readonly #steps: ForwardSteps;
  readonly #products: PlainProducts;
  readonly #rows: PlainRows;
  readonly #normalisesBlocks: boolean;
  readonly #polynomials: number;
  #rowCount = 0;
  #index = 0;
  #hasSeenKeys = false;
  #logit = -Infinity;
  #out: Uint32Array = new Uint32Array();
  #counts = noCounts();

  constructor(recipe: Recipe, dimensions: TileDimensions, options: PlainTileOptions) {
    this.#recipe = recipe;
    this.#dimensions = dimensions;
    this.#steps = { ...recipeSteps(recipe), ...options.steps };
    this.#products = new PlainProducts(recipe, dimensions, options.product);
    this.#rows = new PlainRows(recipe, this.#steps);
    this.#normalisesBlocks = recipe.finish.normalise === 'after-every-block';
    this.#polynomials = polynomialColumnsOf(recipe).filter(Boolean).length;
  }

  begin(queries: InputPatterns, rows: number, sink: number): void {
    this.#rowCount = rows;
    this.#index = 0;
    this.#hasSeenKeys = false;
    this.#logit = sink;
    this.#products.begin(queries, rows);
    this.#rows.begin(rows);
    this.#out = new Uint32Array(rows * this.#dimensions.vDim);
    this.#counts = noCounts();
  }

  block(keyBlock: KeyBlock, keys: InputPatterns, values: InputPatterns): void {
    const { keys: blockKeys } = this.#recipe.tiling;
    const isMasked =
      keyBlock.interrupted.length > 0 ||
      keyBlock.visible.some(({ begin, end }) => begin > 0 || end < blockKeys);
    const block: StepBlock = { ...keyBlock, index: this.#index, isMasked };
    const { weights, alphas } = this.#softmax(block, this.#scores(keyBlock, keys));
    this.#count();
    if (this.#index > 0) this.#rescaleOutput(alphas, block);
    const { accumulated } = this.#steps;
    this.#out = this.#products.addValues(this.#out, weights, values, accumulated);
    if (this.#normalisesBlocks) this.#normaliseBlock();
    this.#index++;
    this.#hasSeenKeys ||= seesAKey(keyBlock);
  }

  /** O, its LSEs as bits, since a NaN has them too, and what the tile has counted; adds the sink. */
  finish() {
    const rows = this.#rows;
    rows.addSink(this.#logit);
    const out = this.#normalisesBlocks
      ? Array.from(this.#out, (bits) => decode(fp32, bits))
      : scaled(this.#out, rows.normalisers(), this.#dimensions.vDim);
    const lse = this.#normalisesBlocks ? rows.maxima : rows.logSumExps();
    const { rescales, rowRescales, rowRescalesSkipped } = rows;
    return {
      out,
      lse: new Float32Array(Uint32Array.from(lse, (x) => encode(fp32, x)).buffer),
      rescales,
      counters: { rowRescales, rowRescalesSkipped, ...this.#counts },
    };
  }

  /** The scores of a block, masked. */
  #scores(keyBlock: KeyBlock, keys: InputPatterns): Float64Array {
    const { scoreChange, tiling } = this.#recipe;
    const scores = Float64Array.from(this.#products.scores(keys), this.#steps.score);
    if (scoreChange !== null) changeScores(scores, scoreChange, keyBlock);
    maskScores(scores, keyBlock, tiling.keys);
    return scores;
  }

  /** P of a block, as bits, and the factors α of the earlier sums. */
  #softmax(block: StepBlock, scores: Float64Array) {
    const { keys } = this.#recipe.tiling;
    const Weights = bitsOf(this.#recipe.format) === 8 ? Uint8Array : Uint16Array;
    const weights = new Weights(this.#rowCount * keys);
    const alphas = this.#rows.addBlock(
      block,
      (row) => Array.from(scores.subarray(row * keys, (row + 1) * keys)),
      this.#hasSeenKeys,
      (row, p) => p.forEach((x, j) => (weights[row * keys + j] = this.#steps.weight(x, block))),
    );
    return { weights, alphas };
  }

  #count(): void {
    const { tensorCore, tiling } = this.#recipe;
    const rows = this.#rowCount;
    const counts = this.#counts;
    counts.polynomialLanes += rows * this.#polynomials;
    counts.hardwareLanes += rows * (tiling.keys - this.#polynomials);
    const { vDim } = this.#dimensions;
    counts.mmas += blockMmas(this.#products.inner, tiling.keys, vDim, tensorCore.productsPerSum);
  }

  /** Multiplies the output of every warp that has to rescale. */
  #rescaleOutput(alphas: readonly number[], block: StepBlock): void {
    const { vDim } = this.#dimensions;
    const out = this.#out;
    const factors = this.#steps.outputAlphas(alphas, block);
    for (let first = 0; first < this.#rowCount; first += warpRows) {
      const warp = factors.slice(first, first + warpRows);
      if (!this.#steps.rescalesWarp(warp)) {
        if (this.#hasSeenKeys) this.#counts.warpRescalesSkipped++;
        continue;
      }
      if (this.#hasSeenKeys) this.#counts.warpRescales++;
      for (let i = first * vDim; i < (first + warp.length) * vDim; i++)
        out[i] = encode(fp32, multiplyFloat32(decode(fp32, out[i]), factors[Math.floor(i / vDim)]));
    }
  }

  /** Normalises O after a block; a row goes on with its LSE in place of its maximum. */
  #normaliseBlock(): void {
    const rows = this.#rows;
    const out = scaled(this.#out, rows.normalisers(), this.#dimensions.vDim);
    this.#out = Uint32Array.from(out, (x) => encode(fp32, x));
    rows.maxima = rows.logSumExps();
  }
}

/**
 * The forward of a recipe on one tile, instruction by instruction: the definition, for reading and for
 * checking, of the results that `createForwardTile` computes much faster. The steps between the matrix
 * products are those of steps.ts.
 */
export function createPlainForwardTile(
  recipe: Recipe,
  dimensions: TileDimensions,
  options: PlainTileOptions = {},
): ForwardTile {
  const toOut = conversions[roundingConversions[recipe.outFormat]];
  const tile = new PlainTile(recipe, dimensions, options);
  return {
    begin: (queries, rows, sink) => tile.begin(queries, rows, sink),
    block: (block, keys, values) => tile.block(block, keys, values),
    finish: () => {
      const { out, ...rest } = tile.finish();
      return { out: Uint16Array.from(out, (x) => toOut.evaluate(encode(fp32, x))), ...rest };
    },
    finishPartial: () => {
      const { out, ...rest } = tile.finish();
      return { out: Float32Array.from(out), ...rest };
    },
  };
}
