import {
  decodeToFloat64,
  formats,
  storageOf,
  type PatternArray,
} from '../../../src/formats/index.js';
import { createTensorCoreTile } from '../../../src/hardware/index.js';
import type { InputPatterns } from '../units.js';
import type { KeyBlock } from '../key-blocks.js';
import { filledDim, type Recipe } from '../recipe.js';
import { addExactProduct } from './output-sums.js';

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

/** Scores of a tile of queries against one block of keys, both ways. */
interface TileScores {
  /** [tile's queries × blockKeys], by the tensor cores and in fp64; −∞ where masked. */
  readonly emulated: Float64Array;
  readonly exact: Float64Array;
  readonly begin: (queries: InputPatterns, rows: number) => void;
  readonly step: (keys: InputPatterns, block: KeyBlock) => void;
}

/** Computes S = Q·Kᵀ of a tile, operands as bit patterns in the format of the inputs. */
export function createTileScores(recipe: Recipe, qkDim: number): TileScores {
  const { format, tensorCore: arithmetic } = recipe;
  const { queries: tileQueries, keys: blockKeys } = recipe.tiling;
  const inner = filledDim(recipe, qkDim);
  const tile = createTensorCoreTile(arithmetic, {
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
  let rows = 0;

  return {
    emulated,
    exact,
    begin: (queries, count) => {
      rows = count;
      padRows(tile.a, queries, qkDim, inner);
      tile.packA();
      decodeInto(tile.a, queryValues);
    },
    step: (keys, { visible }) => {
      padRows(tile.b, keys, qkDim, inner);
      tile.packTransposedB();
      tile.c.fill(0);
      tile.multiplyAccumulate();
      emulated.set(tile.c);
      decodeInto(tile.b, keyValues);
      for (let j = 0; j < blockKeys; j++)
        for (let t = 0; t < inner; t++)
          transposedKeys[t * blockKeys + j] = keyValues[j * inner + t];
      exact.fill(0);
      addExactProduct(exact, queryValues, transposedKeys, { rows, inner, columns: blockKeys });
      visible.forEach(({ begin, end }, row) => {
        for (const scores of [emulated, exact]) {
          scores.fill(-Infinity, row * blockKeys, row * blockKeys + begin);
          scores.fill(-Infinity, row * blockKeys + end, (row + 1) * blockKeys);
        }
      });
    },
  };
}
