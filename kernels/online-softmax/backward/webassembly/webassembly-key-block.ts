import { spanOf } from '../../../../src/problem/index.js';
import { changeScores } from '../../score-change.js';
import { derivativeFactors } from '../element-steps.js';
import type { BackwardDimensions, KeyBlockWork, QueryBlock } from '../key-block.js';
import type { BackwardRecipe } from '../recipe.js';
import { createBackwardEngine, type BackwardEngine } from './engine.js';

/** Rows of `dim` elements into rows of `stride`, zeros beyond and below. */
function fillRows(source: Uint16Array, dim: number, target: Uint16Array, stride: number): void {
  target.fill(0);
  for (let row = 0; row * dim < source.length; row++)
    target.set(source.subarray(row * dim, (row + 1) * dim), row * stride);
}

function firstRows(source: Float32Array, stride: number, rows: number, dim: number): Float32Array {
  const values = new Float32Array(rows * dim);
  for (let row = 0; row < rows; row++)
    values.set(source.subarray(row * stride, row * stride + dim), row * dim);
  return values;
}

/** Hides the keys between the ranges that a row sees; the engine hides those before the first and after the last. */
function hideBetweenRanges(
  { scores }: BackwardEngine,
  { visible }: QueryBlock,
  { tiling }: BackwardRecipe,
): void {
  visible.forEach((ranges, row) =>
    ranges.slice(1).forEach(({ begin }, i) => {
      for (let key = ranges[i].end; key < begin; key++)
        scores[key * tiling.queries + row] = -Infinity;
    }),
  );
}

/** Writes the LSEs, the sums D and the visible keys of rows; rows that do not exist see all `keys`. */
function writeRows(
  engine: BackwardEngine,
  { rows, visible, logSumExp2, productSums }: QueryBlock,
  keys: number,
): void {
  engine.logSumExp2.fill(Infinity).set(logSumExp2);
  engine.productSums.fill(0).set(productSums);
  engine.firstKey.fill(0);
  engine.endKey.fill(keys);
  for (let row = 0; row < rows; row++) {
    const { begin, end } = spanOf(visible[row]);
    engine.firstKey[row] = begin;
    engine.endKey[row] = end;
  }
}

/**
 * The backward of a recipe on one block of keys in WebAssembly: for all inputs the bits of `createPlainKeyBlock`. Each
 * call makes an instance with the memory of one pair of blocks, some megabytes; make one per thread and use it for
 * many blocks.
 *
 * @param derivativeScale as of `createPlainKeyBlock`
 */
export function createKeyBlock(
  recipe: BackwardRecipe,
  { qkDim, vDim }: BackwardDimensions,
  derivativeScale: number | null = null,
): KeyBlockWork {
  const { tiling, scoreChange } = recipe;
  const engine = createBackwardEngine(recipe, { qkDim, vDim });
  const { inner, outInner } = engine;
  const tile = new Float32Array(tiling.queries * qkDim);
  let count = 0;

  return {
    begin: (keys, values) => {
      count = qkDim === 0 ? 0 : keys.length / qkDim;
      fillRows(keys, qkDim, engine.keys, inner);
      for (let key = 0; key < tiling.keys; key++)
        for (let column = 0; column < inner; column++)
          engine.keysTransposed[column * tiling.keys + key] = engine.keys[key * inner + column];
      fillRows(values, vDim, engine.values, outInner);
      engine.begin();
    },
    queries: (block, continues = false) => {
      fillRows(block.queries, qkDim, engine.queries, inner);
      fillRows(block.dout, vDim, engine.dout, outInner);
      writeRows(engine, block, count);
      engine.products();
      const slopes = derivativeFactors(engine.scores, scoreChange, derivativeScale);
      if (slopes !== null) engine.slopes.set(slopes);
      if (scoreChange !== null) changeScores(engine.scores, scoreChange, { addend: null });
      hideBetweenRanges(engine, block, recipe);
      engine.elements(slopes !== null);
      engine.gradients(continues);
      const { dqTransposed } = engine;
      for (let row = 0; row < block.rows; row++)
        for (let column = 0; column < qkDim; column++)
          tile[row * qkDim + column] = dqTransposed[column * tiling.queries + row];
      return tile.subarray(0, block.rows * qkDim);
    },
    finish: () => ({
      dk: firstRows(engine.dk, inner, count, qkDim),
      dv: firstRows(engine.dv, outInner, count, vDim),
    }),
  };
}
