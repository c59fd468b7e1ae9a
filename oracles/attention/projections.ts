import { tileRows } from './operand.js';
import type { Operand } from './operand.js';
import { loadTile, type Block, type TileEngine, type TileRows } from './tile-engine.js';

/**
 * What projections are computed in: fp64, or fp32 of numbers scaled by row and by key, in which they are off by at most
 * (vDim + 3)·2^-24 of the sum of the products' magnitudes.
 */
export type ProjectionFormat = 'fp64' | 'fp32';

/** A matrix whose rows values are projected on, as the loops take it: with the factors of its rows where it is narrow. */
interface LoadedMatrix {
  /** In fp64. */
  readonly wide: Block;
  /** As the loops for many rows take them: in fp32, or the same. */
  readonly rows: Block;
  readonly back: Block;
  /** [64 × 64]: the products with the values of a tile of keys. */
  readonly products: Block;
}

/** The number of fp64 numbers that a projector of so many matrices takes from an engine's spare ones. */
export function projectorLength(matrices: number, vStride: number): number {
  return matrices * tileRows * (2 * vStride + tileRows + 1) + tileRows * (vStride + 1);
}

/** Inner products of the rows of some matrices with the values of a tile of keys, in the memory of an engine. */
export class Projector {
  readonly #engine: TileEngine;
  readonly #isNarrow: boolean;
  readonly #matrices: readonly LoadedMatrix[];
  /** The values of a tile in fp32, and the factors of its keys. */
  readonly #values: Block;
  readonly #backOfKeys: Block;

  constructor(engine: TileEngine, matrices: number, format: ProjectionFormat) {
    const { block, vStride } = engine;
    this.#engine = engine;
    this.#isNarrow = format === 'fp32';
    this.#matrices = Array.from({ length: matrices }, () => ({
      wide: block(tileRows * vStride),
      rows: block(tileRows * vStride),
      back: block(tileRows),
      products: block(tileRows * tileRows),
    }));
    this.#values = block(tileRows * vStride);
    this.#backOfKeys = block(tileRows);
  }

  /** Loads up to 64 rows of each matrix, [rows × dim]. */
  load(matrices: readonly Float64Array[], dim: number): void {
    const { kernels, vStride } = this.#engine;
    matrices.forEach((matrix, index) => {
      const { wide, rows, back } = this.#matrices[index];
      loadTile(wide.view, matrix, dim, vStride);
      if (this.#isNarrow)
        kernels.narrowRows(wide.address, rows.address, back.address, tileRows, vStride);
    });
  }

  /**
   * The products of each matrix with a tile of values, [64 × 64], good until the next call: those of the rows that see the tile, at
   * least.
   */
  project(values: Operand, index: number, { few }: TileRows): readonly Float64Array[] {
    const { kernels, vStride, valuesTransposed } = this.#engine;
    if (few === null) {
      valuesTransposed.view.set(values.columns(index));
      // Few rows leave other numbers behind the columns.
      valuesTransposed.view.fill(0, values.dim * tileRows);
      return this.#projectAll();
    }
    loadTile(valuesTransposed.view, values.tile(index), values.dim, vStride);
    return this.#matrices.map(({ wide, products }) => {
      for (const row of few) {
        const to = products.address + 8 * tileRows * row;
        kernels.rowProduct(wide.address + 8 * vStride * row, valuesTransposed.address, to, vStride);
      }
      return products.view;
    });
  }

  #projectAll(): readonly Float64Array[] {
    const { kernels, vStride, valuesTransposed: values } = this.#engine;
    const [narrow, keys] = [this.#values.address, this.#backOfKeys.address];
    if (this.#isNarrow) kernels.narrowColumns(values.address, narrow, keys, vStride);
    return this.#matrices.map(({ wide, rows, back, products }) => {
      const [from, to] = [(this.#isNarrow ? rows : wide).address, products.address];
      if (this.#isNarrow) kernels.narrowProduct(from, narrow, to, back.address, keys, vStride);
      else kernels.product(from, values.address, to, tileRows, vStride, tileRows);
      return products.view;
    });
  }
}
