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
  const { format, tensorCore, tiling, weight, scoreChange } = recipe;
  const inner = filledBackwardDim(recipe, qkDim);
  const outInner = filledBackwardDim(recipe, vDim);
  const rounding = conversions[roundingConversions[format]];
  const rounded = (values: Float64Array): Uint16Array =>
    Uint16Array.from(values, (x) => rounding.evaluate(encode(fp32, x)));
  let count = 0;
  let keys: Uint16Array = new Uint16Array();
  let values: Uint16Array = new Uint16Array();
  let dk: Uint32Array = new Uint32Array();
  let dv: Uint32Array = new Uint32Array();
  let dq: Uint32Array = new Uint32Array();

  /** A·B, A [m × k] and B [n × k] by its columns, added to c. */
  const product = (a: Uint16Array, bTransposed: Uint16Array, k: number, c?: Uint32Array) => {
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

  const isHidden = ({ rows, visible }: QueryBlock, row: number, key: number): boolean => {
    if (row >= rows) return key >= count;
    return !visible[row].some(({ begin, end }) => begin <= key && key < end);
  };

  return {
    begin: (givenKeys, givenValues) => {
      count = qkDim === 0 ? 0 : givenKeys.length / qkDim;
      keys = padded(givenKeys, qkDim, { rows: tiling.keys, columns: inner });
      values = padded(givenValues, vDim, { rows: tiling.keys, columns: outInner });
      dk = new Uint32Array(tiling.keys * inner);
      dv = new Uint32Array(tiling.keys * outInner);
    },
    queries: (block, continues = false) => {
      const { rows, logSumExp2, productSums } = block;
      const q = padded(block.queries, qkDim, { rows: tiling.queries, columns: inner });
      const dout = padded(block.dout, vDim, { rows: tiling.queries, columns: outInner });
      const scores = numbersOf(product(q, keys, inner));
      const derivatives = numbersOf(product(dout, values, outInner));
      const slopes = derivativeFactors(scores, scoreChange, derivativeScale);
      if (scoreChange !== null) changeScores(scores, scoreChange, { addend: null });
      const weights = scores.map((score, i) => {
        const [row, key] = [Math.floor(i / tiling.keys), i % tiling.keys];
        const shown = isHidden(block, row, key) ? -Infinity : score;
        return weightOf(shown, weight, row < rows ? logSumExp2[row] : Infinity);
      });
      const products = weights.map((p, i) => {
        const row = Math.floor(i / tiling.keys);
        const sum = row < rows ? productSums[row] : 0;
        return scoreDerivative(p, derivatives[i], sum, slopes === null ? null : slopes[i]);
      });
      const [p, ds] = [rounded(weights), rounded(products)];
      const byKey = (matrix: Uint16Array): Uint16Array =>
        transposed(matrix, tiling.queries, tiling.keys);
      const columnsOf = (matrix: Uint16Array, columns: number): Uint16Array =>
        transposed(matrix, matrix.length / columns, columns);
      dv = product(byKey(p), columnsOf(dout, outInner), tiling.queries, dv);
      dk = product(byKey(ds), columnsOf(q, inner), tiling.queries, dk);
      dq = product(ds, columnsOf(keys, inner), tiling.keys, continues ? dq : undefined);
      return firstRows(dq, inner, rows, qkDim);
    },
    finish: () => ({
      dk: firstRows(dk, inner, count, qkDim),
      dv: firstRows(dv, outInner, count, vDim),
    }),
  };
}
