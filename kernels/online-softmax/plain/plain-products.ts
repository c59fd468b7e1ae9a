import { addFloat32 } from '../../../src/arith/index.js';
import { decode, encode, formats } from '../../../src/formats/index.js';
import {
  tensorCoreProduct,
  type MatrixProduct,
  type TensorCoreArithmetic,
} from '../../../src/hardware/index.js';
import type { TileDimensions } from '../query-tiles.js';
import { filledDim, type Recipe } from '../recipe.js';
import { warpColumns } from '../row-sums.js';
import type { InputPatterns } from '../units.js';
import { columnsOf, padded, transposed } from './pattern-matrix.js';

const { fp32 } = formats;

/** Computes a matrix product. */
export type PlainProduct = (
  arithmetic: TensorCoreArithmetic,
  product: MatrixProduct,
) => Uint32Array;

/** A product's operands, both with `k` elements a row, and what it adds to. */
interface Operands {
  readonly n: number;
  readonly k: number;
  readonly a: InputPatterns;
  readonly bTransposed: InputPatterns;
  readonly c: Uint32Array;
}

/** The matrix products of a recipe's forward on one tile of queries. */
export class PlainProducts {
  /** Elements that a product for scores sums over, with those that are filled with zeros. */
  readonly inner: number;
  readonly #recipe: Recipe;
  readonly #dimensions: TileDimensions;
  readonly #product: PlainProduct;
  #rows = 0;
  #queries: InputPatterns = new Uint16Array();

  constructor(
    recipe: Recipe,
    dimensions: TileDimensions,
    product: PlainProduct = tensorCoreProduct,
  ) {
    this.inner = filledDim(recipe, dimensions.qkDim);
    this.#recipe = recipe;
    this.#dimensions = dimensions;
    this.#product = product;
  }

  begin(queries: InputPatterns, rows: number): void {
    this.#rows = rows;
    this.#queries = padded(queries, this.#dimensions.qkDim, { rows, columns: this.inner });
  }

  /** S of a block, fp32 bits. */
  scores(keys: InputPatterns): Uint32Array {
    const { keys: blockKeys } = this.#recipe.tiling;
    return this.#multiply({
      n: blockKeys,
      k: this.inner,
      a: this.#queries,
      bTransposed: padded(keys, this.#dimensions.qkDim, { rows: blockKeys, columns: this.inner }),
      c: new Uint32Array(this.#rows * blockKeys),
    });
  }

  /** O + P·V of a block, fp32 bits. */
  addValues(
    out: Uint32Array,
    weights: InputPatterns,
    values: InputPatterns,
    accumulated: (bits: number) => number,
  ): Uint32Array {
    const { keys } = this.#recipe.tiling;
    const { vDim: n } = this.#dimensions;
    const columns = transposed(padded(values, n, { rows: keys, columns: n }), keys, n);
    if (this.#recipe.values.sum === 'chain')
      return this.#multiply({ n, k: keys, a: weights, bTransposed: columns, c: out }).map(
        accumulated,
      );
    let sum = out;
    for (const share of warpColumns(keys)) {
      const of = (matrix: InputPatterns): InputPatterns => columnsOf(matrix, keys, share);
      const added = this.#multiply({
        n,
        k: share.length,
        a: of(weights),
        bTransposed: of(columns),
        c: new Uint32Array(this.#rows * n),
      });
      sum = sum.map((bits, i) =>
        encode(fp32, addFloat32(decode(fp32, bits), decode(fp32, added[i]))),
      );
    }
    return sum;
  }

  #multiply(operands: Operands): Uint32Array {
    const { format, tensorCore } = this.#recipe;
    return this.#product(tensorCore, {
      m: this.#rows,
      aFormat: format,
      bFormat: format,
      ...operands,
    });
  }
}
