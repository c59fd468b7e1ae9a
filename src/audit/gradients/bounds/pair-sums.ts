import { createTileProducts, tileRows, type TileMatrix } from '../../bounds/index.js';

/** What is summed of the pairs that an element is a sum over, each with the sizes, squares or values of the other factor. */
export const pairParts = ['worst', 'systematic', 'variance', 'known', 'signed'] as const;
/** One of {@link pairParts}: `signed` are P·slope for dQ, and what the stored forward moves for dK and dV. */
export type PairPart = (typeof pairParts)[number];

type ByPart<T> = Readonly<Record<PairPart, T>>;

/** Sums of a gradient's elements. */
export type PairSums = ByPart<Float64Array>;

/** Arrays of so many sums, all 0. */
export function emptyPairSums(length: number): PairSums {
  return byPart(() => new Float64Array(length));
}

function byPart<T>(make: (part: PairPart) => T): ByPart<T> {
  return Object.fromEntries(pairParts.map((part) => [part, make(part)])) as ByPart<T>;
}

/** 64 rows of an operand, padded with zeros: as they are, their sizes and their squares. */
export interface FactorRows {
  readonly dim: number;
  readonly stride: number;
  readonly values: TileMatrix;
  readonly sizes: TileMatrix;
  readonly squares: TileMatrix;
}

/** Which of the three a part is multiplied by. */
const factorOf = {
  worst: 'sizes',
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
  /** [64 × 64]: q·k and dO·v. */
  readonly scores: TileMatrix;
  readonly products: TileMatrix;
  readonly dq: PairMatrices;
  readonly dk: PairMatrices;
  readonly dv: PairMatrices;
  /** [64 × 64], keys first: dT and P as dK and dV are sums of. */
  readonly derivatives: TileMatrix;
  readonly weights: TileMatrix;
  /** Multiplies the rows of the scores and of dP. */
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

/** Allocates for one pair of head dimensions: O(tile). */
export function createPairMemory(qkDim: number, vDim: number): PairMemory {
  const strideOf = (dim: number) => Math.max(4, Math.ceil(dim / 4) * 4);
  const [qkStride, vStride] = [strideOf(qkDim), strideOf(vDim)];
  const square = tileRows * tileRows;
  const numbers = square * 20 + tileRows * (8 * qkStride + 8 * vStride + 64) + 4096;
  const { matrix, multiply } = createTileProducts(numbers);
  const factor = (dim: number, stride: number): FactorRows => ({
    dim,
    stride,
    values: matrix(tileRows * stride),
    sizes: matrix(tileRows * stride),
    squares: matrix(tileRows * stride),
  });
  const matrices = () => byPart(() => matrix(square));
  const plain = (dim: number, stride: number): FactorRows => {
    const values = matrix(tileRows * stride);
    return { dim, stride, values, sizes: values, squares: values };
  };
  const memory = {
    queries: factor(qkDim, qkStride),
    keys: factor(qkDim, qkStride),
    dout: factor(vDim, vStride),
    values: plain(vDim, vStride),
    scores: matrix(square),
    products: matrix(square),
    dq: matrices(),
    dk: matrices(),
    dv: matrices(),
    derivatives: matrix(square),
    weights: matrix(square),
  };
  const transposed = matrix(tileRows * Math.max(qkStride, vStride));
  const result = matrix(tileRows * Math.max(qkStride, vStride));
  const multiplyRows = (a: FactorRows, b: FactorRows, to: TileMatrix) => {
    for (let row = 0; row < tileRows; row++)
      for (let c = 0; c < b.stride; c++)
        transposed.view[c * tileRows + row] = b.values.view[row * b.stride + c];
    multiply(a.values, transposed, to, a.stride, tileRows);
  };
  return {
    ...memory,
    multiplyRows: () => {
      multiplyRows(memory.queries, memory.keys, memory.scores);
      multiplyRows(memory.dout, memory.values, memory.products);
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
  const { dim, stride, values, sizes, squares } = factor;
  values.view.fill(0);
  for (let at = 0, row = 0; at < rows.length; at += dim, row++)
    for (let c = 0; c < dim; c++) {
      const x = rows[at + c];
      values.view[row * stride + c] = Number.isFinite(x) ? x : 0;
    }
  if (sizes === values) return;
  for (let at = 0; at < values.view.length; at++) {
    const x = values.view[at];
    sizes.view[at] = Math.abs(x);
    squares.view[at] = x * x;
  }
}

function isZero(numbers: Float64Array): boolean {
  return numbers.every((x) => x === 0);
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
