import type { TileView } from '../../src/problem/index.js';
import { tileRows } from '../attention/operand.js';
import type { Rules } from '../attention/rules.js';
import { loadTile, type Block } from '../attention/tile-engine.js';
import type { GradientEngine } from './gradient-engine.js';
import type { RowStatistics } from './row-statistics.js';
import { addRow, largestOfColumns, type GradientSums, type TileTargets } from './sums.js';
import type { GradientBlock } from './weigh-tile.js';

/** Strides of a [64 × 64] tile in bytes. */
const rowBytes = tileRows * 8;
const elementBytes = 8;

/** An upper bound on the error of a dropped weight, and of one that underflows. */
const droppedWeight = 2 ** -978;

function maximumOf(values: Float64Array): number {
  return values.reduce((most, x) => Math.max(most, x), 0);
}

/** Σ over the rows of a tile of weight · the row's number. */
function columnSums({ view }: Block, ofRows: Float64Array): Float64Array {
  const sums = new Float64Array(tileRows);
  for (let i = 0; i < tileRows; i++) {
    if (ofRows[i] === 0) continue;
    for (let j = 0; j < tileRows; j++) sums[j] += view[i * tileRows + j] * ofRows[i];
  }
  return sums;
}

/** Σ over the keys of a tile of weight, times the row's number. */
function rowSums({ view }: Block, ofRows: Float64Array): Float64Array {
  return ofRows.map((x, i) => {
    if (x === 0) return 0;
    let sum = 0;
    for (let j = 0; j < tileRows; j++) sum += view[i * tileRows + j];
    return sum * x;
  });
}

const noErrors = new Float64Array(tileRows);

/** Factors of the errors that the rows of a block cause in every tile. */
interface BlockErrors {
  readonly hasAbsolute: boolean;
  readonly relative: number;
  readonly weightError: number;
  /** Σ over the rows of the largest errors of dT and P from underflow. */
  readonly floor: number;
  readonly weightFloor: number;
  readonly largestQuery: Float64Array;
  readonly largestDout: Float64Array;
}

/** The errors that all tiles of a block share. */
export function blockErrors(
  { operands: { query, dout }, firstRow }: GradientBlock,
  statistics: RowStatistics,
  { kept }: Rules,
): BlockErrors {
  const index = firstRow / tileRows;
  return {
    hasAbsolute: statistics.absolute.some((x) => x > 0),
    relative: maximumOf(statistics.relative),
    weightError: maximumOf(statistics.weightError),
    floor: statistics.floor.reduce((sum, x) => sum + x, 0),
    weightFloor:
      (statistics.isUsable.reduce((sum, x) => sum + x, 0) * droppedWeight) / (kept?.share ?? 1),
    largestQuery: largestOfColumns(query.tile(index), query.dim),
    largestDout: largestOfColumns(dout.tile(index), dout.dim),
  };
}

/** A tile of keys that a block has been weighed against. */
interface WeighedTile {
  readonly firstKey: number;
  readonly view: TileView;
  readonly errors: BlockErrors;
  /** P with the effect of dropout. */
  readonly weights: Block;
}

/** Per key of a tile 1 where any row sees it. */
function seenKeys({ tile }: GradientEngine, { interrupted }: TileView): Uint8Array {
  const isSeen = new Uint8Array(tileRows);
  const gapped = new Set(interrupted.map(({ row }) => row));
  for (let i = 0; i < tileRows; i++)
    if (!gapped.has(i)) isSeen.fill(1, tile.low.view[i], tile.high.view[i]);
  for (const { ranges } of interrupted)
    for (const { begin, end } of ranges) isSeen.fill(1, begin, end);
  return isSeen;
}

/** Adds dTᵀ·Q and Pᵀ·dO of a tile to dK and dV. */
export function addKeys(
  engine: GradientEngine,
  { operands }: GradientBlock,
  statistics: RowStatistics,
  { keys, placeOf }: TileTargets,
  { firstKey, view, errors, weights }: WeighedTile,
): void {
  if (keys === null) return;
  const { tile, kernels } = engine;
  const count = Math.min(tileRows, operands.keys.rows - firstKey);
  const places = Array.from({ length: count }, (_, j) => placeOf(firstKey + j));
  if (places.every((place) => place < 0)) return;
  const isSeen = seenKeys(engine, view);
  const add = (
    sums: GradientSums,
    a: Block,
    m: Block,
    b: Block,
    ofTerms: Parameters<typeof addRow>[2],
  ) => {
    kernels.productWithSizes(
      a.address,
      m.address,
      b.address,
      engine.sum.address,
      engine.size.address,
      elementBytes,
      rowBytes,
      ofTerms.stride,
    );
    places.forEach((place, j) => {
      if (place >= 0 && isSeen[j] === 1) addRow(sums, place, ofTerms, j);
    });
  };
  const product = { sum: engine.sum.view, size: engine.size.view };
  add(keys.dk, engine.products, engine.scales, engine.queryRows, {
    ...product,
    stride: engine.qkStride,
    relative: () => errors.relative,
    absolute: errors.hasAbsolute ? columnSums(tile.scores, statistics.absolute) : noErrors,
    floor: () => errors.floor,
    largest: errors.largestQuery,
  });
  add(keys.dv, weights, weights, engine.dout, {
    ...product,
    stride: tile.vStride,
    relative: () => errors.weightError,
    absolute: noErrors,
    floor: () => errors.weightFloor,
    largest: errors.largestDout,
  });
}

/** Adds dT·K of a tile to dQ. */
export function addQueries(
  engine: GradientEngine,
  { operands: { keys }, firstRow, ranges }: GradientBlock,
  statistics: RowStatistics,
  dq: GradientSums,
  { firstKey, errors }: { firstKey: number; errors: BlockErrors },
): void {
  const { tile, kernels } = engine;
  const rows = keys.tile(firstKey / tileRows);
  loadTile(engine.keyRows.view, rows, keys.dim, engine.qkStride);
  kernels.productWithSizes(
    engine.products.address,
    engine.scales.address,
    engine.keyRows.address,
    engine.sum.address,
    engine.size.address,
    rowBytes,
    elementBytes,
    engine.qkStride,
  );
  const ofTerms = {
    sum: engine.sum.view,
    size: engine.size.view,
    stride: engine.qkStride,
    relative: (row: number) => statistics.relative[row],
    absolute: errors.hasAbsolute ? rowSums(tile.scores, statistics.absolute) : noErrors,
    floor: (row: number) => tileRows * statistics.floor[row],
    largest: errors.hasAbsolute ? largestOfColumns(rows, keys.dim) : new Float64Array(keys.dim),
  };
  for (let i = 0; i < ranges.length; i++)
    if (tile.low.view[i] < tile.high.view[i]) addRow(dq, firstRow + i, ofTerms, i);
}
