import type { KeyRange } from '../../../../problem/index.js';
import { createAllocator, instantiator } from '../../../../reuse.js';
import { tileRows } from '../../../bounds/index.js';
import type { PairArithmetic } from '../pair-arithmetic.js';
import { blockStride, placeBlocks } from './blocks.js';
import { errorBlocks, type PairErrors } from './pair-errors.js';
import { placeRules, ruleNumbers } from './pair-rules.js';
import { mostOtherUnits } from './pair-sums.js';
import { binary, pairTile, type PairTile as TileFields } from './pairs.generated.js';
import { roundingBlocks, type Roundings } from './roundings.js';
import { sumNumbers, type RowSums } from './row-sums.js';
import {
  knownBlocks,
  rowNumbers,
  weighedBlocks,
  type KnownPairs,
  type RowErrors,
  type WeighedPairs,
} from './weighed-pairs.js';

/** The loops over pairs; addresses are of their memory, `tile` and `rules` those of structs. Their sources say what they do. */
export interface PairKernels {
  readonly memory: WebAssembly.Memory;
  product(a: number, b: number, c: number, rows: number, inner: number, columns: number): void;
  multiplyPairs(
    a: number,
    b: number,
    c: number,
    rowStride: number,
    innerStride: number,
    columns: number,
  ): void;
  addStretches(
    a: number,
    b: number,
    target: number,
    largest: number,
    rowStride: number,
    innerStride: number,
    inner: number,
    columns: number,
  ): void;
  isZero(numbers: number, count: number): boolean;
  transpose(from: number, to: number, columns: number): void;
  completeFactor(
    values: number,
    sizes: number,
    squares: number,
    rowSizes: number,
    rowSquares: number,
    columns: number,
  ): void;
  multiplyNorms(a: number, b: number, to: number): void;
  squarePartials(largest: number, squares: number): void;
  weighPairs(rules: number, tile: number, segments: number): void;
  errWeights(rules: number, tile: number, segments: number): void;
  errDerivatives(rules: number, tile: number, segments: number): void;
  roundOperands(operand: number, roundings: number, begin: number, end: number): void;
  addToRows(tile: number, segments: number): void;
  collectOfKeys(
    tile: number,
    to: number,
    techniques: number,
    isOfValues: boolean,
    segments: number,
  ): void;
  collectOfQueries(tile: number, segments: number): void;
}

const instantiate = instantiator<PairKernels>(binary, 'the bounds of gradients');

/** Numbers in the loops' memory. */
export interface Matrix {
  readonly address: number;
  readonly view: Float64Array;
}

/** What a problem's pairs have. */
export interface PairFeatures {
  /** Whether magnitudes of products and mean squares of their partial sums are known, or norms take their place. */
  readonly hasPartials: boolean;
  readonly hasAddends: boolean;
  readonly hasFactors: boolean;
}

/** Fields of the struct of a tile that are not placed here. */
type OtherFields = Pick<
  TileFields,
  'queries' | 'keys' | 'dq' | 'dk' | 'dv' | 'others' | 'isOfSums' | 'shares'
>;

/** 64 queries against 64 keys: what is known of their pairs, and what follows by one kernel's arithmetic. */
export interface PairTile {
  readonly kernels: PairKernels;
  /** So many of the spare numbers, all 0. */
  readonly matrix: (length: number) => Matrix;
  /** Writes the rest of the tile's struct. */
  readonly complete: (fields: OtherFields) => void;
  /** The address of the tile's struct, and the number of places that rows see: what the loops take. */
  readonly address: number;
  readonly segments: () => number;
  readonly known: KnownPairs;
  readonly weighed: WeighedPairs;
  readonly errors: PairErrors;
  readonly roundings: Roundings;
  /** Sets the rows, and the keys within the tile that each of them sees. */
  readonly setRows: (rows: readonly RowErrors[]) => void;
  readonly setRanges: (ranges: readonly (readonly KeyRange[])[]) => void;
  /** `p-recompute` and `dp-accumulate` of the pairs that are seen: writes `weighed`. */
  readonly weigh: () => void;
  /** `lse-input`, `p-recompute`, `p-round`: writes `errors` of P as dV has it. */
  readonly errWeights: () => void;
  /** Everything about dT, and then `ds-round`: writes `errors` of it. */
  readonly errDerivatives: () => void;
  /** Rounds numbers [begin, end) of `roundings` as an operand. */
  readonly round: (operand: 'p' | 'weights' | 'ds', begin: number, end: number) => void;
  /** Adds the pairs that are weighed to the sums of their rows, which `clearSums` sets to 0 and `sumsOf` gives. */
  readonly addToRows: () => void;
  readonly clearSums: () => void;
  readonly sumsOf: (row: number) => RowSums;
}

/** The most ranges of keys that the rows of a tile may see together. */
const mostSegments = (tileRows * tileRows) / 2;

/** A tile whose errors are all asked for, and collected nowhere. */
const nothingElse: OtherFields = {
  queries: 0,
  keys: 0,
  dq: 0,
  dk: 0,
  dv: 0,
  others: mostOtherUnits,
  isOfSums: true,
  shares: 0,
};

/** Numbers that a tile has beside its blocks. */
const otherNumbers =
  tileRows * (rowNumbers.length + sumNumbers.length) + (3 * mostSegments) / 2 + ruleNumbers;

/** Places a tile in memory of its own: its blocks and rows, the places that rows see, and the arithmetic. */
function placeTile(
  arithmetic: PairArithmetic,
  { hasPartials, hasAddends, hasFactors }: PairFeatures,
  spare: number,
) {
  const kernels = instantiate();
  const blocks = [knownBlocks, weighedBlocks, errorBlocks, roundingBlocks];
  const count = blocks.reduce((sum, names) => sum + names.length, 0);
  const numbers = count * blockStride + otherNumbers + spare;
  const allocator = createAllocator(kernels.memory, 8 * numbers);
  const matrix = (length: number): Matrix => {
    const address = allocator.allocate(8 * length);
    return { address, view: new Float64Array(kernels.memory.buffer, address, length) };
  };
  const known = placeBlocks(knownBlocks, matrix);
  const weighed = placeBlocks(weighedBlocks, matrix);
  const errors = placeBlocks(errorBlocks, matrix);
  const roundings = placeBlocks(roundingBlocks, matrix);
  const rows = matrix(tileRows * rowNumbers.length);
  const rowSums = matrix(tileRows * sumNumbers.length);
  const segments = matrix((3 * mostSegments) / 2);
  const fields = {
    known: known.address,
    hasPartials,
    hasAddends,
    hasFactors,
    weighed: weighed.address,
    errors: errors.address,
    roundings: roundings.address,
    rows: rows.address,
    segments: segments.address,
    rowSums: rowSums.address,
  };
  const placed = allocator.struct(pairTile);
  return {
    kernels,
    matrix,
    rules: placeRules(allocator, arithmetic),
    complete: (others: OtherFields) => placed.write({ ...fields, ...others }),
    known: known.views,
    weighed: weighed.views,
    errors: errors.views,
    roundings,
    rows: rows.view,
    rowSums: rowSums.view,
    places: new Int32Array(kernels.memory.buffer, segments.address, 3 * mostSegments),
  };
}

/** The facts about pairs that a problem has. */
function knownOf(
  views: ReturnType<typeof placeTile>['known'],
  { hasPartials, hasAddends, hasFactors }: PairFeatures,
): KnownPairs {
  return {
    ...views,
    dotPartials: hasPartials ? views.dotPartials : null,
    productPartials: hasPartials ? views.productPartials : null,
    addend: hasAddends ? views.addend : null,
    addendSize: hasAddends ? views.addendSize : null,
    factor: hasFactors ? views.factor : null,
  };
}

/**
 * Allocates a tile.
 * @param spare number of fp64 numbers that `matrix` may give beside it
 */
export function createPairTile(
  arithmetic: PairArithmetic,
  features: PairFeatures,
  spare = 0,
): PairTile {
  const placed = placeTile(arithmetic, features, spare);
  const { kernels, rules, rows, rowSums, places, roundings } = placed;
  const tile = placed.complete(nothingElse);
  placed.weighed.slope.fill(1);
  let seen = 0;
  return {
    kernels,
    matrix: placed.matrix,
    complete: (others) => void placed.complete(others),
    address: tile,
    segments: () => seen,
    known: knownOf(placed.known, features),
    weighed: placed.weighed,
    errors: placed.errors,
    roundings: roundings.views,
    setRows: (of) => {
      of.forEach((row, i) => {
        rowNumbers.forEach((name, k) => (rows[i * rowNumbers.length + k] = row[name]));
      });
    },
    setRanges: (ranges) => {
      seen = 0;
      ranges.forEach((ofRow, i) => {
        for (const { begin, end } of ofRow) places.set([i, begin, end], 3 * seen++);
      });
    },
    weigh: () => kernels.weighPairs(rules.address, tile, seen),
    errWeights: () => kernels.errWeights(rules.address, tile, seen),
    errDerivatives: () => kernels.errDerivatives(rules.address, tile, seen),
    round: (operand, begin, end) =>
      kernels.roundOperands(rules[operand], roundings.address, 8 * begin, 8 * end),
    addToRows: () => kernels.addToRows(tile, seen),
    clearSums: () => rowSums.fill(0),
    sumsOf: (row) => {
      const first = row * sumNumbers.length;
      const entries = sumNumbers.map((name, k) => [name, rowSums[first + k]]);
      return Object.fromEntries(entries) as unknown as RowSums;
    },
  };
}
