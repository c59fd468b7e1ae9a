import {
  decodeToFloat64,
  formats,
  storageOf,
  type PatternArray,
} from '../../../src/formats/index.js';
import { createTensorCoreTile } from '../../../src/hardware/index.js';
import type { InputPatterns } from '../units.js';
import { type KeyBlock, maskScores } from '../key-blocks.js';
import { filledDim, type Recipe } from '../recipe.js';
import { changeScores } from '../score-change.js';
import type { ExactArithmetic } from './engine.js';

/** Rows of `dim` elements into rows of `stride`; the rest of `target` becomes zero. */
export function padRows(
  target: PatternArray,
  source: InputPatterns,
  dim: number,
  stride: number,
): void {
  target.fill(0);
  for (let row = 0; row * dim < source.length; row++)
    target.set(source.subarray(row * dim, (row + 1) * dim), row * stride);
}

/** Ways of computing: as the kernel does, or in fp64. */
type Arithmetic = 'emulated' | 'exact';

/** Scores of a tile of queries against one block of keys, each way. */
export interface TileScores {
  /**
   * [tile's queries × blockKeys], −∞ where masked: products by the tensor cores or in fp64, and changed as in the
   * recipe or in fp64.
   */
  readonly of: (products: Arithmetic, change: Arithmetic) => Float64Array;
  readonly begin: (queries: InputPatterns, rows: number) => void;
  readonly step: (keys: InputPatterns, block: KeyBlock) => void;
}

/** Scores by the ways of computing products and changes. */
type ScoreTable = Readonly<Record<Arithmetic, Readonly<Record<Arithmetic, Float64Array>>>>;

/**
 * Room for the scores of a recipe that changes them; null for one that does not. `fill` writes all four from products,
 * and returns them: emulated at the nearest fp32 product, plus the contribution of the difference from that.
 */
function changedScores({ scoreChange, softmaxScale, tiling }: Recipe) {
  if (scoreChange === null) return null;
  const { softcap } = scoreChange;
  const room = () => new Float64Array(tiling.queries * tiling.keys);
  const table: ScoreTable = {
    emulated: { emulated: room(), exact: room() },
    exact: { emulated: room(), exact: room() },
  };
  const exactly = (product: number): number => {
    const scaled = product * softmaxScale;
    return softcap === null ? scaled : softcap * Math.tanh(scaled / softcap);
  };
  const fillOne = (products: Float64Array, target: ScoreTable[Arithmetic], block: KeyBlock) => {
    const { addend, visible } = block;
    const count = visible.length * tiling.keys;
    for (let i = 0; i < count; i++) {
      target.emulated[i] = Math.fround(products[i]);
      target.exact[i] = exactly(products[i]) + (addend === null ? 0 : addend[i]);
    }
    changeScores(target.emulated.subarray(0, count), scoreChange, block);
    for (let i = 0; i < count; i++) {
      const nearest = Math.fround(products[i]);
      if (products[i] !== nearest) target.emulated[i] += exactly(products[i]) - exactly(nearest);
    }
  };
  return {
    ...table,
    fill: (products: Readonly<Record<Arithmetic, Float64Array>>, block: KeyBlock) => {
      fillOne(products.emulated, table.emulated, block);
      fillOne(products.exact, table.exact, block);
      return [table.emulated, table.exact].flatMap(({ emulated, exact }) => [emulated, exact]);
    },
  };
}

/** Computes S = Q·Kᵀ of a tile, operands as bit patterns in the format of the inputs. */
export function createTileScores(
  recipe: Recipe,
  qkDim: number,
  arithmetic: ExactArithmetic,
): TileScores {
  const { format, tensorCore } = recipe;
  const { queries: tileQueries, keys: blockKeys } = recipe.tiling;
  const inner = filledDim(recipe, qkDim);
  const tile = createTensorCoreTile(tensorCore, {
    rows: tileQueries,
    columns: blockKeys,
    inner,
    aFormat: format,
    bFormat: format,
  });
  const emulated = new Float64Array(tileQueries * blockKeys);
  const exact = new Float64Array(tileQueries * blockKeys);
  const queryValues = new Float64Array(tileQueries * inner);
  const keyValues = new Float64Array(blockKeys * inner);
  const transposedKeys = new Float64Array(inner * blockKeys);
  const decodeInto = (patterns: PatternArray, values: Float64Array): Float64Array =>
    decodeToFloat64(storageOf(formats[format], patterns), formats[format], values);
  const changed = changedScores(recipe);
  let rows = 0;

  return {
    of: (products, change) =>
      changed === null ? { emulated, exact }[products] : changed[products][change],
    begin: (queries, count) => {
      rows = count;
      padRows(tile.a, queries, qkDim, inner);
      tile.packA();
      decodeInto(tile.a, queryValues);
    },
    step: (keys, block) => {
      padRows(tile.b, keys, qkDim, inner);
      tile.packTransposedB();
      tile.c.fill(0);
      tile.multiplyAccumulate();
      emulated.set(tile.c);
      decodeInto(tile.b, keyValues);
      for (let j = 0; j < blockKeys; j++)
        for (let t = 0; t < inner; t++)
          transposedKeys[t * blockKeys + j] = keyValues[j * inner + t];
      arithmetic.product(exact, queryValues, transposedKeys, { rows, inner, columns: blockKeys });
      const scores =
        changed === null ? [emulated, exact] : changed.fill({ emulated, exact }, block);
      for (const one of scores) maskScores(one, block, blockKeys);
    },
  };
}
