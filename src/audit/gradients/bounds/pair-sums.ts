import { createTileProducts, tileRows, type TileMatrix } from '../../bounds/index.js';

/** What is summed of the pairs that an element is a sum over, each with the sizes, squares or values of the other factor. */
export const pairParts = [
  'worst',
  'magnitude',
  'systematic',
  'variance',
  'known',
  'signed',
] as const;
/**
 * One of {@link pairParts}: `magnitude` of the terms as they may be, errors and all; `signed` are P·slope for dQ, and what the
 * stored forward moves for dK and dV.
 */
export type PairPart = (typeof pairParts)[number];

type ByPart<T> = Readonly<Record<PairPart, T>>;

/** Sums of a gradient's elements. */
export type PairSums = ByPart<Float64Array>;

/** Arrays of so many sums, all 0. */
export function emptyPairSums(length: number): PairSums {
  return byPart(() => new Float64Array(length));
}

/** Something of each part. */
export function byPart<T>(make: (part: PairPart) => T): ByPart<T> {
  return Object.fromEntries(pairParts.map((part) => [part, make(part)])) as ByPart<T>;
}

/** 64 rows of an operand, padded with zeros: as they are, their sizes and their squares, and the sums of these, by row. */
export interface FactorRows {
  readonly dim: number;
  readonly stride: number;
  readonly values: TileMatrix;
  readonly sizes: TileMatrix;
  readonly squares: TileMatrix;
  readonly rowSizes: Float64Array;
  readonly rowSquares: Float64Array;
}

/** Which of the three a part is multiplied by. */
const factorOf = {
  worst: 'sizes',
  magnitude: 'sizes',
  systematic: 'sizes',
  variance: 'squares',
  known: 'values',
  signed: 'values',
} as const satisfies ByPart<keyof FactorRows>;

/** A number for each pair of a tile, by part: [64 × 64], rows of the gradient first. */
export type PairMatrices = ByPart<TileMatrix>;

/** Working memory for 64 queries against 64 keys. */
export interface PairMemory {
  readonly queries: FactorRows;
  readonly keys: FactorRows;
  readonly dout: FactorRows;
  readonly values: FactorRows;
  /** [64 × 64]: q·k and dO·v, and the same of magnitudes. */
  readonly scores: TileMatrix;
  readonly scoreSizes: TileMatrix;
  readonly products: TileMatrix;
  readonly productSizes: TileMatrix;
  readonly dq: PairMatrices;
  readonly dk: PairMatrices;
  readonly dv: PairMatrices;
  /** [64 × 64], keys first: dT and P as dK and dV are sums of. */
  readonly derivatives: TileMatrix;
  readonly weights: TileMatrix;
  /** Multiplies the rows of the scores and of dP, and their magnitudes. */
  readonly multiplyRows: () => void;
  /** Adds a product of a [64 × 64] matrix to rows [first, first + count) of a target. */
  readonly addProduct: (
    matrix: TileMatrix,
    factor: FactorRows,
    kind: 'values' | 'sizes' | 'squares',
    target: Float64Array,
    rows: { readonly first: number; readonly count: number },
  ) => void;
}

/**
 * Allocates for one pair of head dimensions: O(tile).
 * @param usesNorms whether the product of two rows' norms will do for that of their magnitudes, which it is never less than
 */
export function createPairMemory(qkDim: number, vDim: number, usesNorms: boolean): PairMemory {
  const strideOf = (dim: number) => Math.max(4, Math.ceil(dim / 4) * 4);
  const [qkStride, vStride] = [strideOf(qkDim), strideOf(vDim)];
  const square = tileRows * tileRows;
  const numbers = square * 26 + tileRows * (10 * qkStride + 10 * vStride + 64) + 4096;
  const { matrix, multiply } = createTileProducts(numbers);
  const factor = (dim: number, stride: number): FactorRows => ({
    dim,
    stride,
    values: matrix(tileRows * stride),
    sizes: matrix(tileRows * stride),
    squares: matrix(tileRows * stride),
    rowSizes: new Float64Array(tileRows),
    rowSquares: new Float64Array(tileRows),
  });
  const matrices = () => byPart(() => matrix(square));
  const memory = {
    queries: factor(qkDim, qkStride),
    keys: factor(qkDim, qkStride),
    dout: factor(vDim, vStride),
    values: factor(vDim, vStride),
    scores: matrix(square),
    scoreSizes: matrix(square),
    products: matrix(square),
    productSizes: matrix(square),
    dq: matrices(),
    dk: matrices(),
    dv: matrices(),
    derivatives: matrix(square),
    weights: matrix(square),
  };
  const transposed = matrix(tileRows * Math.max(qkStride, vStride));
  const result = matrix(tileRows * Math.max(qkStride, vStride));
  const multiplyRows = (a: FactorRows, b: FactorRows, kind: 'values' | 'sizes', to: TileMatrix) => {
    const { view } = b[kind];
    for (let row = 0; row < tileRows; row++)
      for (let c = 0; c < b.stride; c++)
        transposed.view[c * tileRows + row] = view[row * b.stride + c];
    multiply(a[kind], transposed, to, a.stride, tileRows);
  };
  /** |a||b|ᵀ, or what it is at most. */
  const multiplySizes = (a: FactorRows, b: FactorRows, to: TileMatrix) => {
    if (!usesNorms) {
      multiplyRows(a, b, 'sizes', to);
      return;
    }
    for (let i = 0; i < tileRows; i++) {
      const size = Math.sqrt(a.rowSquares[i]) * (1 + 2 ** -40);
      for (let j = 0; j < tileRows; j++)
        to.view[i * tileRows + j] = size * Math.sqrt(b.rowSquares[j]);
    }
  };
  return {
    ...memory,
    multiplyRows: () => {
      const { queries, keys, dout, values } = memory;
      multiplyRows(queries, keys, 'values', memory.scores);
      multiplySizes(queries, keys, memory.scoreSizes);
      multiplyRows(dout, values, 'values', memory.products);
      multiplySizes(dout, values, memory.productSizes);
    },
    addProduct: (left, { dim, stride, ...of }, kind, target, { first, count }) => {
      multiply(left, of[kind], result, tileRows, stride);
      for (let row = 0; row < count; row++) {
        const to = (first + row) * dim;
        for (let c = 0; c < dim; c++) target[to + c] += result.view[row * stride + c];
      }
    },
  };
}

/** Writes rows of an operand into a memory's, zero beyond them; infinities and NaNs become 0. */
export function loadFactor(factor: FactorRows, rows: Float64Array): void {
  const { dim, stride, values, sizes, squares, rowSizes, rowSquares } = factor;
  for (const { view } of [values, sizes, squares]) view.fill(0);
  rowSizes.fill(0);
  rowSquares.fill(0);
  for (let from = 0, row = 0; from < rows.length; from += dim, row++)
    for (let c = 0; c < dim; c++) {
      const given = rows[from + c];
      const x = Number.isFinite(given) ? given : 0;
      const at = row * stride + c;
      values.view[at] = x;
      sizes.view[at] = Math.abs(x);
      squares.view[at] = x * x;
      rowSizes[row] += Math.abs(x);
      rowSquares[row] += x * x;
    }
}

function isZero(numbers: Float64Array): boolean {
  for (let at = 0; at < numbers.length; at++) if (numbers[at] !== 0) return false;
  return true;
}

/** Adds all parts of a tile to the sums of some rows of a gradient. */
export function addPairs(
  memory: PairMemory,
  matrices: PairMatrices,
  factor: FactorRows,
  sums: PairSums,
  rows: { readonly first: number; readonly count: number },
): void {
  for (const part of pairParts)
    if (!isZero(matrices[part].view))
      memory.addProduct(matrices[part], factor, factorOf[part], sums[part], rows);
}
