import { decode, encode, formats } from '../../../src/formats/index.js';
import { conversions, tensorCoreProduct } from '../../../src/hardware/index.js';
import { padded, transposed } from '../plain/pattern-matrix.js';
import { changeScores } from '../score-change.js';
import { roundingConversions } from '../units.js';
import { derivativeFactors, scoreDerivative, weightOf } from './element-steps.js';
import type { BackwardDimensions, KeyBlockWork, QueryBlock } from './key-block.js';
import { filledBackwardDim, type BackwardRecipe } from './recipe.js';

const { fp32 } = formats;

function numbersOf(bits: Uint32Array): Float64Array {
  return Float64Array.from(bits, (pattern) => decode(fp32, pattern));
}

function firstRows(bits: Uint32Array, columns: number, rows: number, dim: number): Float32Array {
  const values = new Float32Array(rows * dim);
  for (let i = 0; i < values.length; i++)
    values[i] = decode(fp32, bits[Math.floor(i / dim) * columns + (i % dim)]);
  return values;
}

/** A·B of a recipe, A [m × k] and B [n × k] by its columns, added to c. */
type Product = (
  a: Uint16Array,
  bTransposed: Uint16Array,
  k: number,
  c?: Uint32Array,
) => Uint32Array;

function productOf({ format, tensorCore }: BackwardRecipe): Product {
  return (a, bTransposed, k, c) => {
    const [m, n] = [a.length / k, bTransposed.length / k];
    return tensorCoreProduct(tensorCore, {
      m,
      n,
      k,
      aFormat: format,
      bFormat: format,
      a,
      bTransposed,
      c: c ?? new Uint32Array(m * n),
    });
  };
}

/** Whether a row of a block of queries does not see a key; rows that do not exist see all `keys` that do. */
function isHidden({ rows, visible }: QueryBlock, row: number, key: number, keys: number): boolean {
  if (row >= rows) return key >= keys;
  return !visible[row].some(({ begin, end }) => begin <= key && key < end);
}

/**
 * P and dS of a block of queries, rounded to the format.
 *
 * @param scores products of Q and K, which are changed
 * @param keys number of keys that exist
 */
function elementsOf(
  { format, tiling, weight, scoreChange }: BackwardRecipe,
  block: QueryBlock,
  { scores, derivatives }: { readonly scores: Float64Array; readonly derivatives: Float64Array },
  keys: number,
  derivativeScale: number | null,
): { readonly p: Uint16Array; readonly ds: Uint16Array } {
  const { rows, logSumExp2, productSums } = block;
  const slopes = derivativeFactors(scores, scoreChange, derivativeScale);
  if (scoreChange !== null) changeScores(scores, scoreChange, { addend: null });
  const weights = scores.map((score, i) => {
    const [row, key] = [Math.floor(i / tiling.keys), i % tiling.keys];
    const shown = isHidden(block, row, key, keys) ? -Infinity : score;
    return weightOf(shown, weight, row < rows ? logSumExp2[row] : Infinity);
  });
  const products = weights.map((p, i) => {
    const row = Math.floor(i / tiling.keys);
    const sum = row < rows ? productSums[row] : 0;
    return scoreDerivative(p, derivatives[i], sum, slopes === null ? null : slopes[i]);
  });
  const rounding = conversions[roundingConversions[format]];
  const rounded = (values: Float64Array): Uint16Array =>
    Uint16Array.from(values, (x) => rounding.evaluate(encode(fp32, x)));
  return { p: rounded(weights), ds: rounded(products) };
}

/** A matrix by its columns. */
function byColumns(matrix: Uint16Array, columns: number): Uint16Array {
  return transposed(matrix, matrix.length / columns, columns);
}

/**
 * The backward of a recipe on one block of keys, instruction by instruction: the definition, for reading and for
 * checking, of the results that `createKeyBlock` computes much faster. Blocks are whole: rows that do not exist are
 * zeros, with a D of 0 and an LSE of +∞, and keys that do not exist have scores of −∞. All matrices between the
 * products are [queries × keys].
 *
 * @param derivativeScale factor of dS before it is rounded; null for none
 */
export function createPlainKeyBlock(
  recipe: BackwardRecipe,
  { qkDim, vDim }: BackwardDimensions,
  derivativeScale: number | null = null,
): KeyBlockWork {
  const { tiling } = recipe;
  const inner = filledBackwardDim(recipe, qkDim);
  const outInner = filledBackwardDim(recipe, vDim);
  const product = productOf(recipe);
  let count = 0;
  let keys: Uint16Array = new Uint16Array();
  let values: Uint16Array = new Uint16Array();
  let dk: Uint32Array = new Uint32Array();
  let dv: Uint32Array = new Uint32Array();
  let dq: Uint32Array = new Uint32Array();
  return {
    begin: (givenKeys, givenValues) => {
      count = qkDim === 0 ? 0 : givenKeys.length / qkDim;
      keys = padded(givenKeys, qkDim, { rows: tiling.keys, columns: inner });
      values = padded(givenValues, vDim, { rows: tiling.keys, columns: outInner });
      dk = new Uint32Array(tiling.keys * inner);
      dv = new Uint32Array(tiling.keys * outInner);
    },
    queries: (block, continues = false) => {
      const q = padded(block.queries, qkDim, { rows: tiling.queries, columns: inner });
      const dout = padded(block.dout, vDim, { rows: tiling.queries, columns: outInner });
      const scores = numbersOf(product(q, keys, inner));
      const derivatives = numbersOf(product(dout, values, outInner));
      const products = { scores, derivatives };
      const { p, ds } = elementsOf(recipe, block, products, count, derivativeScale);
      dv = product(byColumns(p, tiling.keys), byColumns(dout, outInner), tiling.queries, dv);
      dk = product(byColumns(ds, tiling.keys), byColumns(q, inner), tiling.queries, dk);
      dq = product(ds, byColumns(keys, inner), tiling.keys, continues ? dq : undefined);
      return firstRows(dq, inner, block.rows, qkDim);
    },
    finish: () => ({
      dk: firstRows(dk, inner, count, qkDim),
      dv: firstRows(dv, outInner, count, vDim),
    }),
  };
}
