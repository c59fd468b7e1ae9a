import { tileRows } from '../../../bounds/index.js';
import type { PairArithmetic } from '../pair-arithmetic.js';
import { pairPlaces } from '../gradient-techniques.js';
import { blockLength, blockStride, placeBlocks } from './blocks.js';
import { createFactor, strideOf, type FactorRows } from './factor-rows.js';
import {
  createPairTile,
  type Matrix,
  type PairFeatures,
  type PairKernels,
  type PairTile,
} from './pair-tile.js';
import {
  factorOf,
  pairParts,
  summedParts,
  type FactorKind,
  type PairPart,
  type PairSums,
} from './pair-sums.js';

/** Numbers of the rows of one side of a tile, in the order of the loops, 64 of each. */
const sideNumbers = [
  ...(['sizes', 'squares', 'valueSizes', 'valueSquares'] as const),
  ...(['alikeScores', 'alikeProducts', 'alikeBoth'] as const),
] as const;

/**
 * The rows of one side of a tile: Σ|x| and Σ x² of the rows that their pairs are multiplied by, for the factor of dQ or dK and for
 * that of dV; and how many rows of the head have the same q or k, the same dO or v, and either: their errors are alike.
 */
type SideNumbers = Readonly<Record<(typeof sideNumbers)[number], Matrix>>;

/** A gradient that pairs are summed into. */
export type SummedGradient = 'dq' | 'dk' | 'dv';

/** The rows of a gradient that a tile is added to. */
interface SummedRows {
  readonly first: number;
  readonly count: number;
}

/** Working memory for 64 queries against 64 keys, of which everything is O(tile). */
export interface PairMemory {
  readonly tile: PairTile;
  readonly queries: FactorRows;
  readonly keys: FactorRows;
  readonly dout: FactorRows;
  readonly values: FactorRows;
  readonly sides: { readonly queries: SideNumbers; readonly keys: SideNumbers };
  /** The parts that are summed. */
  readonly parts: readonly PairPart[];
  /** The addresses of the parts of gradients. */
  readonly gradients: Readonly<Record<SummedGradient, number>>;
  /** Sums over a tile, by row or key: of errors at worst by technique, then of variances, 64 each. */
  readonly shares: Float64Array;
  /** Multiplies the rows of the scores and of dP, and their magnitudes. */
  readonly multiplyRows: () => void;
  /** Adds the product of one part of a gradient's pairs to rows of a target. */
  readonly addProduct: (
    gradient: SummedGradient,
    part: PairPart,
    factor: FactorRows,
    target: Float64Array,
    rows: SummedRows,
  ) => void;
  /** Adds all parts of a tile to the sums of some rows of a gradient. */
  readonly addPairs: (
    gradient: SummedGradient,
    factor: FactorRows,
    sums: PairSums,
    rows: SummedRows,
  ) => void;
}

/** Numbers that the loops need beside a tile's. */
function spareNumbers(qkStride: number, vStride: number): number {
  const most = Math.max(qkStride, vStride, tileRows);
  const sides = 2 * sideNumbers.length * tileRows + 2 * pairPlaces * tileRows;
  const factors = 6 * tileRows * (qkStride + vStride);
  return 3 * pairParts.length * blockStride + sides + factors + 4 * tileRows * most;
}

function sideOf(matrix: (length: number) => Matrix) {
  const { address, view } = matrix(sideNumbers.length * tileRows);
  const entries = sideNumbers.map((name, i) => {
    const at = i * tileRows;
    return [name, { address: address + 8 * at, view: view.subarray(at, at + tileRows) }];
  });
  return { address, numbers: Object.fromEntries(entries) as SideNumbers };
}

/** Bytes from a row of a [64 × 64] block to the next, and from an element. */
const [rowBytes, elementBytes] = [8 * tileRows, 8];

/** Strides of the rows of a gradient in a tile whose rows are queries, and of the terms of their sums. */
const stridesOf = {
  dq: [rowBytes, elementBytes],
  dk: [elementBytes, rowBytes],
  dv: [elementBytes, rowBytes],
} as const;

/** Makes the products of rows of operands that are facts about pairs. */
function createRowProducts(
  { kernels, known }: PairTile,
  addressOf: (block: Float64Array) => number,
  transposed: Matrix,
  [sums, largest]: readonly [Matrix, Matrix],
) {
  const multiply = (a: FactorRows, b: FactorRows, kind: FactorKind, to: Float64Array) => {
    kernels.transpose(b[kind].address, transposed.address, b.stride);
    const { address } = a[kind];
    kernels.product(address, transposed.address, addressOf(to), tileRows, a.stride, tileRows);
  };
  /** |a||b|ᵀ, or an upper bound of it: the product of two rows' norms, which is never less. */
  const multiplySizes = (a: FactorRows, b: FactorRows, to: Float64Array) => {
    if (known.dotPartials !== null) multiply(a, b, 'sizes', to);
    else kernels.multiplyNorms(a.rowSquares.address, b.rowSquares.address, addressOf(to));
  };
  /** The mean squares of the partial sums of a·b. */
  const multiplyPartials = (a: FactorRows, b: FactorRows, to: Float64Array | null) => {
    if (to === null) return;
    for (const { view } of [sums, largest]) view.fill(0, 0, blockLength);
    kernels.transpose(b.values.address, transposed.address, b.stride);
    kernels.addStretches(
      a.values.address,
      transposed.address,
      sums.address,
      largest.address,
      8 * a.stride,
      elementBytes,
      a.stride,
      tileRows,
    );
    multiply(a, b, 'squares', to);
    kernels.squarePartials(largest.address, addressOf(to));
  };
  return { multiply, multiplySizes, multiplyPartials };
}

/** Makes the sums of parts of pairs times rows of an operand. */
function createPairAdder(
  kernels: PairKernels,
  parts: readonly PairPart[],
  gradients: PairMemory['gradients'],
  [result, sums, largest]: readonly [Matrix, Matrix, Matrix],
): Pick<PairMemory, 'addProduct' | 'addPairs'> {
  const placeOf = (gradient: SummedGradient, part: PairPart) =>
    gradients[gradient] + 8 * blockStride * pairParts.indexOf(part);
  const addProduct: PairMemory['addProduct'] = (gradient, part, factor, target, rows) => {
    const { dim, stride } = factor;
    const [rowStride, innerStride] = stridesOf[gradient];
    const left = placeOf(gradient, part);
    const right = factor[factorOf[part]].address;
    kernels.multiplyPairs(left, right, result.address, rowStride, innerStride, stride);
    for (let row = 0; row < rows.count; row++) {
      const to = (rows.first + row) * dim;
      for (let c = 0; c < dim; c++) target[to + c] += result.view[row * stride + c];
    }
  };
  /** The same of the values, with the largest sizes of partial sums. */
  const addPartials = (
    gradient: SummedGradient,
    { dim, stride, values }: FactorRows,
    target: PairSums,
    { first, count }: SummedRows,
  ) => {
    const copied = [
      [target.value, sums.view],
      [target.largest, largest.view],
    ] as const;
    for (const [from, to] of copied)
      for (let row = 0; row < count; row++)
        to.set(from.subarray((first + row) * dim, (first + row + 1) * dim), row * stride);
    const [rowStride, innerStride] = stridesOf[gradient];
    kernels.addStretches(
      placeOf(gradient, 'value'),
      values.address,
      sums.address,
      largest.address,
      rowStride,
      innerStride,
      tileRows,
      stride,
    );
    for (const [to, from] of copied)
      for (let row = 0; row < count; row++)
        to.set(from.subarray(row * stride, row * stride + dim), (first + row) * dim);
  };
  return {
    addProduct,
    addPairs: (gradient, factor, target, rows) => {
      for (const part of parts)
        if (kernels.isZero(placeOf(gradient, part), blockLength)) continue;
        else if (part === 'value') addPartials(gradient, factor, target, rows);
        else addProduct(gradient, part, factor, target[part], rows);
    },
  };
}

/** Allocates for one pair of head dimensions and the arithmetic of one kernel. */
export function createPairMemory(
  arithmetic: PairArithmetic,
  { qkDim, vDim }: { readonly qkDim: number; readonly vDim: number },
  features: Omit<PairFeatures, 'hasPartials'>,
): PairMemory {
  // Where operands are rounded, the loss of dot products is little beside it.
  const isOfSums = arithmetic.ds.format === null;
  const others = Math.max(arithmetic.ds.otherUnits.length, arithmetic.p.otherUnits.length);
  const [qkStride, vStride] = [strideOf(qkDim), strideOf(vDim)];
  const tile = createPairTile(
    arithmetic,
    { ...features, hasPartials: isOfSums },
    spareNumbers(qkStride, vStride),
  );
  const { kernels, known, matrix } = tile;
  const [ofQueries, ofKeys] = [sideOf(matrix), sideOf(matrix)];
  const most = Math.max(qkStride, vStride, tileRows);
  const scratch = () => matrix(tileRows * most);
  const factors = (qk: SideNumbers) => ({
    ofScores: createFactor(matrix, qkDim, [qk.sizes, qk.squares]),
    ofProducts: createFactor(matrix, vDim, [qk.valueSizes, qk.valueSquares]),
  });
  const [left, right] = [factors(ofQueries.numbers), factors(ofKeys.numbers)];
  const place = () => placeBlocks(pairParts, matrix).address;
  const gradients = { dq: place(), dk: place(), dv: place() };
  const shares = matrix(2 * pairPlaces * tileRows);
  const parts = summedParts(isOfSums, others);
  tile.complete({
    ...gradients,
    queries: ofQueries.address,
    keys: ofKeys.address,
    others,
    isOfSums,
    shares: shares.address,
  });
  const [transposed, result, sums, largest] = [scratch(), scratch(), scratch(), scratch()];
  const rows = createRowProducts(tile, ({ byteOffset }) => byteOffset, transposed, [sums, largest]);
  return {
    tile,
    queries: left.ofScores,
    keys: right.ofScores,
    dout: left.ofProducts,
    values: right.ofProducts,
    sides: { queries: ofQueries.numbers, keys: ofKeys.numbers },
    parts,
    gradients,
    shares: shares.view,
    multiplyRows: () => {
      const [q, k, dO, v] = [left.ofScores, right.ofScores, left.ofProducts, right.ofProducts];
      rows.multiply(q, k, 'values', known.dot);
      rows.multiplySizes(q, k, known.dotSize);
      rows.multiply(dO, v, 'values', known.product);
      rows.multiplySizes(dO, v, known.productSize);
      rows.multiplyPartials(q, k, known.dotPartials);
      rows.multiplyPartials(dO, v, known.productPartials);
    },
    ...createPairAdder(kernels, parts, gradients, [result, sums, largest]),
  };
}
