import { createTileProducts, tileRows, type TileMatrix } from '../../bounds/index.js';
import { createPartialSums, partialSquares, partialSumNumbers } from './partial-sums.js';

/** Parts of a pair's errors that are summed into an element, each times the sizes, squares or values of the other factor. */
export const pairParts = [
  'worst',
  'magnitude',
  'systematic',
  'variance',
  'known',
  'byFirst',
  'bySecond',
  'byThird',
  'signed',
  'value',
  'squares',
  'ofWeights',
  'ofScores',
  'ofProducts',
  'ofMeans',
] as const;
/** Parts that would be known by factors that numbers may have when they are rounded, beside the smallest. */
export const otherParts = ['byFirst', 'bySecond', 'byThird'] as const;
/** The parts that are known, by each factor that there may be. */
export const knownParts = ['known', ...otherParts] as const;
export type KnownPart = (typeof knownParts)[number];
/** The largest number of such factors: dropout's, the scale's and that of both. */
export const mostOtherUnits = otherParts.length;

/**
 * One of {@link pairParts}: `magnitude` is that of the terms, errors and all; `signed` is P·slope for dQ, and the shift by the
 * stored forward for dK and dV; `value` is dT or P, and `squares` theirs; the others are the errors where all scores of the
 * forward pass, all scores, dP or D are off by the same share.
 */
export type PairPart = (typeof pairParts)[number];

type ByPart<T> = Readonly<Record<PairPart, T>>;

/** Sums of a gradient's elements. */
export interface PairSums extends ByPart<Float64Array> {
  /** The largest size that the running sums of `value` have had. */
  readonly largest: Float64Array;
}

/** Arrays of `length` sums, all 0; empty for parts that are not summed. */
export function emptyPairSums(length: number, { parts }: Pick<PairMemory, 'parts'>): PairSums {
  const numbers = (part: PairPart) => new Float64Array(parts.includes(part) ? length : 0);
  return { ...byPart(numbers), largest: numbers('value') };
}

/** The mean square of the partial sums of an element; Infinity where they are not known. */
export function partialsOf({ largest, squares }: PairSums, at: number): number {
  return largest.length === 0 ? Infinity : partialSquares(largest[at], squares[at]);
}

/** The error of an element where scores, dP and D are off by shares of themselves; 0 where that is not summed. */
export function commonOf(
  { ofWeights, ofScores, ofProducts, ofMeans }: PairSums,
  at: number,
): number {
  if (ofScores.length === 0) return 0;
  return (
    Math.abs(ofWeights[at]) +
    Math.abs(ofScores[at]) +
    Math.abs(ofProducts[at]) +
    Math.abs(ofMeans[at])
  );
}

/** Writes the known part of an element by each of the other factors, times a scale; 0 where that is not summed. */
export function byOthersOf(sums: PairSums, at: number, scale: number, to: Float64Array): void {
  otherParts.forEach((part, k) => {
    to[k] = sums[part].length === 0 ? 0 : scale * sums[part][at];
  });
}

/** Makes a value for each part. */
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

/** One of the three arrays that pairs are multiplied by. */
type FactorKind = 'values' | 'sizes' | 'squares';

/** The array that each part is multiplied by. */
const factorOf = {
  worst: 'sizes',
  magnitude: 'sizes',
  systematic: 'sizes',
  variance: 'squares',
  known: 'values',
  byFirst: 'values',
  bySecond: 'values',
  byThird: 'values',
  signed: 'values',
  value: 'values',
  squares: 'squares',
  ofWeights: 'values',
  ofScores: 'values',
  ofProducts: 'values',
  ofMeans: 'values',
} as const satisfies ByPart<FactorKind>;

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
  /** The mean squares of their partial sums; null where norms take their place. */
  readonly scorePartials: TileMatrix | null;
  readonly productPartials: TileMatrix | null;
  /** The parts that are summed. */
  readonly parts: readonly PairPart[];
  readonly dq: PairMatrices;
  readonly dk: PairMatrices;
  readonly dv: PairMatrices;
  /** Multiplies the rows of the scores and of dP, and their magnitudes. */
  readonly multiplyRows: () => void;
  /** Adds a product of a [64 × 64] matrix to rows [first, first + count) of a target. */
  readonly addProduct: (
    matrix: TileMatrix,
    factor: FactorRows,
    kind: FactorKind,
    target: Float64Array,
    rows: { readonly first: number; readonly count: number },
  ) => void;
  /** The same of the values, with the largest sizes of partial sums. */
  readonly addPartials: (
    matrix: TileMatrix,
    factor: FactorRows,
    sums: PairSums,
    rows: { readonly first: number; readonly count: number },
  ) => void;
}

/** Parts that only the errors of fp32 sums follow from, which are little beside roundings of operands. */
const ofSums: readonly PairPart[] = [
  'value',
  'squares',
  'ofWeights',
  'ofScores',
  'ofProducts',
  'ofMeans',
];

/**
 * Allocates for one pair of head dimensions: O(tile).
 * @param usesNorms whether the product of two rows' norms takes the place of that of their magnitudes, which it is never
 * less than
 * @param others number of factors that numbers may have when they are rounded, beside the smallest
 */
export function createPairMemory(
  qkDim: number,
  vDim: number,
  { usesNorms, others }: { readonly usesNorms: boolean; readonly others: number },
): PairMemory {
  const strideOf = (dim: number) => Math.max(4, Math.ceil(dim / 4) * 4);
  const [qkStride, vStride] = [strideOf(qkDim), strideOf(vDim)];
  const square = tileRows * tileRows;
  const unused: readonly PairPart[] = [...(usesNorms ? ofSums : []), ...otherParts.slice(others)];
  const most = Math.max(qkStride, vStride);
  const ofStretches = partialSumNumbers(Math.max(most, tileRows));
  const numbers = square * 57 + ofStretches + tileRows * (10 * qkStride + 10 * vStride + 64) + 4096;
  const products = createTileProducts(numbers);
  const { matrix, multiply } = products;
  const { forEachStretch } = createPartialSums(products, Math.max(most, tileRows));
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
    scorePartials: usesNorms ? null : matrix(square),
    productPartials: usesNorms ? null : matrix(square),
    parts: pairParts.filter((part) => !unused.includes(part)),
    dq: matrices(),
    dk: matrices(),
    dv: matrices(),
  };
  const transposed = matrix(tileRows * most);
  const result = matrix(tileRows * most);
  const transpose = (b: FactorRows, kind: FactorKind) => {
    const { view } = b[kind];
    for (let row = 0; row < tileRows; row++)
      for (let c = 0; c < b.stride; c++)
        transposed.view[c * tileRows + row] = view[row * b.stride + c];
  };
  const multiplyRows = (a: FactorRows, b: FactorRows, kind: FactorKind, to: TileMatrix) => {
    transpose(b, kind);
    multiply(a[kind], transposed, to, a.stride, tileRows);
  };
  const sums = new Float64Array(usesNorms ? 0 : square);
  const largest = new Float64Array(sums.length);
  /** The mean squares of the partial sums of a·b. */
  const multiplyPartials = (a: FactorRows, b: FactorRows, to: TileMatrix | null) => {
    if (to === null) return;
    for (const of of [sums, largest]) of.fill(0);
    transpose(b, 'values');
    forEachStretch(a.values, transposed, a.stride, tileRows, (added) => {
      for (let at = 0; at < square; at++) {
        sums[at] += added[at];
        largest[at] = Math.max(largest[at], Math.abs(sums[at]));
      }
    });
    multiplyRows(a, b, 'squares', to);
    for (let at = 0; at < square; at++) to.view[at] = partialSquares(largest[at], to.view[at]);
  };
  /** |a||b|ᵀ, or an upper bound of it. */
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
      multiplyPartials(queries, keys, memory.scorePartials);
      multiplyPartials(dout, values, memory.productPartials);
    },
    addProduct: (left, { dim, stride, ...of }, kind, target, { first, count }) => {
      multiply(left, of[kind], result, tileRows, stride);
      for (let row = 0; row < count; row++) {
        const to = (first + row) * dim;
        for (let c = 0; c < dim; c++) target[to + c] += result.view[row * stride + c];
      }
    },
    addPartials: (left, { dim, stride, values }, { value, largest: most }, { first, count }) =>
      forEachStretch(left, values, tileRows, stride, (added) => {
        for (let row = 0; row < count; row++)
          for (let c = 0, to = (first + row) * dim; c < dim; c++, to++) {
            value[to] += added[row * stride + c];
            most[to] = Math.max(most[to], Math.abs(value[to]));
          }
      }),
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
  for (const part of memory.parts)
    if (isZero(matrices[part].view)) continue;
    else if (part === 'value') memory.addPartials(matrices[part], factor, sums, rows);
    else memory.addProduct(matrices[part], factor, factorOf[part], sums[part], rows);
}
