import {
  hasKey,
  maskTile,
  spanOfRows,
  type KeyRange,
  type Problem,
  type ProblemShape,
  type TileView,
} from '../../problem/index.js';
import type { KernelArithmetic } from '../../../kernels/index.js';
import { type BoundMemory, tileRows } from './memory.js';
import { alikeBinsPerOctave } from './alike.js';
import type { HeadOperands } from './head-operands.js';
import { scoreError } from './scores.js';

/** At most 64 keys of one block, with the order in which the inner loops take them. */
export interface KeyTile {
  readonly firstKey: number;
  readonly keys: number;
  /** Which block of the kernel it belongs to, counted in the kernel's order. */
  readonly block: number;
  readonly startsBlock: boolean;
  readonly endsBlock: boolean;
  /** [64]: for each place the key's place in the tile; those of the polynomial come first. */
  readonly order: Int32Array;
  /** How many are the polynomial's. */
  readonly polynomial: number;
}

/** Blocks of `blockKeys` keys in the kernel's order: from the last to the first where it is online. */
function blocksOf(arithmetic: KernelArithmetic, span: KeyRange): KeyRange[] {
  const { maximum } = arithmetic;
  if (span.begin >= span.end) return [];
  if (maximum.kind !== 'online') return [span];
  const { blockKeys } = maximum;
  const blocks: KeyRange[] = [];
  for (
    let block = Math.ceil(span.end / blockKeys) - 1;
    block >= Math.floor(span.begin / blockKeys);
    block--
  )
    blocks.push({
      begin: block * blockKeys,
      end: Math.min((block + 1) * blockKeys, span.end),
    });
  return blocks;
}

/** The ranges of keys that each of some rows sees: see `Mask`. */
type RowRanges = readonly (readonly KeyRange[])[];

/** The tiles of all blocks from the first that any row sees to the last, in the order of the blocks. */
export function keyTiles(arithmetic: KernelArithmetic, rows: RowRanges): KeyTile[] {
  const { polynomialColumns } = arithmetic.exponential;
  return blocksOf(arithmetic, spanOfRows(rows)).flatMap(({ begin, end }, block) =>
    Array.from({ length: Math.ceil((end - begin) / tileRows) }, (_, i) => {
      const firstKey = begin + i * tileRows;
      const isPolynomial = (place: number) => polynomialColumns[i * tileRows + place] === true;
      const places = Array.from({ length: tileRows }, (_, place) => place);
      const polynomial = places.filter(isPolynomial);
      const order = [...polynomial, ...places.filter((place) => !isPolynomial(place))];
      return {
        firstKey,
        keys: Math.min(tileRows, end - firstKey),
        block,
        startsBlock: i === 0,
        endsBlock: firstKey + tileRows >= end,
        order: Int32Array.from(order),
        polynomial: polynomial.length,
      };
    }),
  );
}

/** Tiles whose scores `scan` keeps for `score`, of 64 kB each: those of the first 4096 keys or so. */
const mostKept = 64;

const inOrder = Int32Array.from({ length: tileRows }, (_, place) => place);

/** Scores of 64 queries at a time, in the memory's block `scores`, with how far each may be off. */
export interface ScoreTiles {
  /** What scores times this are exponents of 2. */
  readonly factor: number;
  readonly load: (operands: HeadOperands, firstRow: number, rows: number) => void;
  /** Scores, NaN where a row does not see the key, and errors (log2), in the order of the tile. */
  readonly score: (tile: KeyTile, rows: RowRanges) => void;
  /** The largest exponents of each block; counts the exponents of each bin and finds the largest error. */
  readonly scan: (tiles: readonly KeyTile[], rows: RowRanges) => Float64Array[];
}

/** Makes the scores of a problem, exact to some 2^-50, for a kernel of the given arithmetic. */
export function createScoreTiles(
  { scale, softcap }: Problem,
  { qkDim }: ProblemShape,
  arithmetic: KernelArithmetic,
  memory: BoundMemory,
): ScoreTiles {
  const { kernels, scores, queries, keysTransposed, queryUnits, keyUnits, low, high } = memory;
  const { step, units, perPartial, perUnit } = scoreError(arithmetic.scores, qkDim);
  const factor = (softcap ?? scale) * Math.LOG2E;
  const capFactor = softcap === null ? 0 : (2 * scale * Math.LOG2E) / softcap;
  // The slope of a softcap is at most 1, so a score's error grows by the scale alone.
  const exponentUnit = Math.abs(scale) * Math.LOG2E * (1 + 2 ** -12);
  const count = tileRows * tileRows;
  const binsPerOctave = alikeBinsPerOctave(arithmetic.weightFormat);
  let operands: HeadOperands | undefined;
  const room: Float64Array[] = [];
  const kept = new Map<KeyTile, Float64Array>();

  function loadKeys({ order, keys, firstKey }: KeyTile): void {
    if (operands === undefined) throw new TypeError('no queries are loaded');
    const { values, units: unitsOfKeys } = operands.key;
    keysTransposed.view.fill(0);
    keyUnits.view.fill(0);
    for (let place = 0; place < tileRows; place++) {
      const key = order[place];
      if (key >= keys) continue;
      let at = (firstKey + key) * qkDim;
      for (let t = place; t < qkDim * tileRows; t += tileRows)
        keysTransposed.view[t] = values[at++];
      at = (firstKey + key) * units;
      for (let t = place; t < units * tileRows; t += tileRows) keyUnits.view[t] = unitsOfKeys[at++];
    }
  }

  /** Keeps what is in memory, scores and errors with the keys in order, as those of the tile. */
  function keep(tile: KeyTile): void {
    if (kept.size === mostKept) return;
    const both = (room[kept.size] ??= new Float64Array(2 * count));
    both.set(scores.view);
    both.set(memory.scoreError.view, count);
    kept.set(tile, both);
  }

  /** Into memory what was kept, with the keys in the order of the tile. */
  function recall({ order }: KeyTile, both: Float64Array): void {
    const errors = memory.scoreError.view;
    for (let row = 0; row < count; row += tileRows)
      for (let place = 0; place < tileRows; place++) {
        const key = row + order[place];
        scores.view[row + place] = both[key];
        errors[row + place] = both[count + key];
      }
  }

  /** The places that each row sees, in the order of the keys. */
  function mask({ firstKey, keys }: KeyTile, rows: RowRanges): TileView {
    return maskTile(rows, { begin: firstKey, end: firstKey + keys }, low.view, high.view);
  }

  /** Makes scores NaN that a row does not see. */
  function hide(tile: KeyTile, rows: RowRanges): void {
    const { interrupted } = mask(tile, rows);
    const isSeen = (row: number, key: number) => low.view[row] <= key && key < high.view[row];
    for (let row = 0; row < tileRows; row++) {
      if (low.view[row] === 0 && high.view[row] === tileRows) continue;
      for (let place = 0; place < tileRows; place++)
        if (!isSeen(row, tile.order[place])) scores.view[row * tileRows + place] = NaN;
    }
    for (const { row, ranges } of interrupted)
      for (let place = 0; place < tileRows; place++)
        if (!hasKey(ranges, tile.order[place])) scores.view[row * tileRows + place] = NaN;
  }

  /** Calls with one range of places for each row at a time, until the rows have had all that they see. */
  function forEachPass({ interrupted }: TileView, pass: () => void): void {
    for (const { row, ranges } of interrupted) high.view[row] = ranges[0].end;
    pass();
    const most = interrupted.reduce((count, { ranges }) => Math.max(count, ranges.length), 1);
    for (let next = 1; next < most; next++) {
      low.view.fill(0);
      high.view.fill(0);
      for (const { row, ranges } of interrupted) {
        if (next >= ranges.length) continue;
        low.view[row] = ranges[next].begin;
        high.view[row] = ranges[next].end;
      }
      pass();
    }
  }

  function compute(tile: KeyTile): void {
    const both = kept.get(tile);
    if (both !== undefined) return recall(tile, both);
    loadKeys(tile);
    const [q, k, s, error] = [queries, keysTransposed, scores, memory.scoreError].map(
      ({ address }) => address,
    ) as [number, number, number, number];
    if (step === 0) {
      kernels.product(q, k, s, tileRows, qkDim, tileRows);
      memory.scoreError.view.fill(0);
    } else kernels.chainProduct(q, k, s, error, tileRows, qkDim, tileRows, step);
    const products = memory.variance.address;
    kernels.product(queryUnits.address, keyUnits.address, products, tileRows, units, tileRows);
    kernels.scoreErrors(error, products, count, perPartial * exponentUnit, perUnit * exponentUnit);
    if (softcap !== null) kernels.capScores(s, count, capFactor);
  }

  return {
    factor,
    load: (head, firstRow, rows) => {
      operands = head;
      kept.clear();
      const { query } = head;
      const rowsOf = (values: Float64Array, dim: number) =>
        values.subarray(firstRow * dim, (firstRow + rows) * dim);
      queries.view.fill(0);
      queries.view.set(rowsOf(query.values, qkDim));
      queryUnits.view.fill(0);
      queryUnits.view.set(rowsOf(query.units, units));
    },
    score: (tile, rows) => {
      compute(tile);
      hide(tile, rows);
    },
    scan: (tiles, rows) => {
      memory.tables.view.fill(0);
      memory.largest.view.fill(-Infinity);
      memory.errors.view.fill(0);
      const blocks: Float64Array[] = [];
      for (const tile of tiles) {
        compute({ ...tile, order: inOrder });
        keep(tile);
        const block = (blocks[tile.block] ??= new Float64Array(rows.length).fill(-Infinity));
        forEachPass(mask(tile, rows), () => {
          kernels.scanScores(
            scores.address,
            memory.scoreError.address,
            memory.errors.address,
            tileRows,
            factor,
            low.address,
            high.address,
            memory.maxima.address,
            memory.largest.address,
            memory.tables.address,
            binsPerOctave,
            memory.tableBits,
          );
          for (let i = 0; i < rows.length; i++)
            block[i] = Math.max(block[i], memory.maxima.view[i]);
        });
      }
      return blocks;
    },
  };
}
