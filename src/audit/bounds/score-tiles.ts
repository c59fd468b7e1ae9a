import {
  hasKey,
  maskTile,
  type Problem,
  type ProblemShape,
  type TileView,
} from '../../problem/index.js';
import type { KernelArithmetic } from '../../../kernels/index.js';
import { createAddends, type Addends } from './addend.js';
import { type BoundMemory, paddedRows, tileRows } from './memory.js';
import { alikeBinsPerOctave } from './alike.js';
import type { HeadOperands, OperandRows } from './head-operands.js';
import type { KeyTile, RowRanges } from './key-tiles.js';
import { scoreError } from './scores.js';

/** Tiles whose scores `scan` keeps for `score`, of 64 kB each: those of the first 4096 keys or so. */
const mostKept = 64;

/** Scores of 64 queries at a time, in the memory's block `scores`, with how far each may be off. */
export interface ScoreTiles {
  /** The factor that turns scores into exponents of 2. */
  readonly factor: number;
  /**
   * [64]: the largest addend of a key that each row sees and that may have weight, natural units, as `scan` met
   * them: see `Addends`.
   */
  readonly largestAddend: Float64Array;
  /**
   * Loads up to 64 queries.
   * @param negligible by row: keys whose exponents (log2) are at most this, with all errors, have no weight, whatever
   * their errors are
   */
  readonly load: (operands: HeadOperands, firstRow: number, negligible: Float64Array) => void;
  /** Scores, NaN where a row does not see the key, and errors (log2). */
  readonly score: (tile: KeyTile, rows: RowRanges) => void;
  /** The largest exponents of each block; counts the exponents of each bin and finds the largest error. */
  readonly scan: (tiles: readonly KeyTile[], rows: RowRanges) => Float64Array[];
}

/** Makes the scores of a problem, exact to some 2^-50, for a kernel of the given arithmetic. */
export function createScoreTiles(
  problem: Problem,
  shape: ProblemShape,
  arithmetic: KernelArithmetic,
  memory: BoundMemory,
): ScoreTiles {
  const { scale, softcap } = problem;
  const { qkDim } = shape;
  const { kernels, scores, queries, keyPanels, queryUnits, keyUnits, low, high } = memory;
  const { step, units, perPartial, perUnit } = scoreError(arithmetic.scores, qkDim);
  const toExponent = (softcap ?? scale) * Math.LOG2E;
  const addends = createAddends(problem, shape);
  // With addends, the memory holds exponents.
  const factor = addends === null ? toExponent : 1;
  const { exponent: rounding } = arithmetic;
  const perAddend = (rounding.ofAddend ?? 0) * Math.LOG2E * (1 + 2 ** -12);
  const perScore = (rounding.ofScore + rounding.ofSoftcap) * (1 + 2 ** -12);
  const capFactor = softcap === null ? 0 : (2 * scale * Math.LOG2E) / softcap;
  // The slope of a softcap is at most 1, so a score's error grows by the scale alone.
  const exponentUnit = Math.abs(scale) * Math.LOG2E * (1 + 2 ** -12);
  const count = tileRows * tileRows;
  const binsPerOctave = alikeBinsPerOctave(arithmetic.weightFormat);
  let operands: HeadOperands | undefined;
  const room: Float64Array[] = [];
  const kept = new Map<KeyTile, Float64Array>();
  let rows = 0;
  let padded = 0;
  let firstQuery = 0;
  let negligible: Float64Array = new Float64Array(tileRows);
  const largestAddend = new Float64Array(tileRows);
  const sizes = new Float64Array(addends === null ? 0 : count);
  const [addendOfRow, sizeOfRow] = [new Float64Array(tileRows), new Float64Array(tileRows)];

  function loadKeys(key: OperandRows, { keys, firstKey }: KeyTile): void {
    const [rowsOfKeys, unitsTransposed] = [memory.keys.view, keyUnits.view];
    if (keys < tileRows) {
      rowsOfKeys.fill(0);
      unitsTransposed.fill(0);
    }
    for (let place = 0, count = 0; place < keys; place += count) {
      const row = firstKey + place;
      const { first, values, units: unitsOfKeys } = key.with(row);
      const from = row - first;
      count = Math.min(keys - place, first + tileRows - row);
      rowsOfKeys.set(values.subarray(from * qkDim, (from + count) * qkDim), place * qkDim);
      for (let i = 0, at = from * units; i < count; i++)
        for (let t = place + i; t < units * tileRows; t += tileRows)
          unitsTransposed[t] = unitsOfKeys[at++];
    }
    kernels.loadPanels(memory.keys.address, keyPanels.address, qkDim);
  }

  /**
   * Turns scores into exponents with their addends, whose errors are added to theirs: Theorem 10 of docs/theory/bounds.md. A
   * key that has no weight, whatever its error is, counts with an error of 0.
   */
  function add({ addend, size }: Addends, head: number, { firstKey }: KeyTile): void {
    const errors = memory.scoreError.view;
    for (let i = 0; i < rows; i++) {
      addend(head, firstQuery + i, firstKey, addendOfRow);
      size(head, firstQuery + i, firstKey, sizeOfRow);
      for (let key = 0; key < tileRows; key++) {
        const at = i * tileRows + key;
        const scaled = scores.view[at] * toExponent;
        const exponent = scaled + addendOfRow[key] * Math.LOG2E;
        const ofScore = perScore * Math.min(Math.abs(scaled), sizeOfRow[key] * Math.LOG2E);
        const error = errors[at] + ofScore + perAddend * sizeOfRow[key];
        const mayCount = !(exponent + error <= negligible[i]);
        scores.view[at] = exponent;
        errors[at] = mayCount ? error : 0;
        sizes[at] = mayCount ? sizeOfRow[key] : 0;
      }
    }
  }

  /** Keeps the contents of the memory, scores and errors, as those of the tile. */
  function keep(tile: KeyTile): void {
    if (kept.size === mostKept) return;
    const both = (room[kept.size] ??= new Float64Array(2 * count));
    both.set(scores.view);
    both.set(memory.scoreError.view, count);
    kept.set(tile, both);
  }

  /** Loads into memory the kept scores and errors. */
  function recall(both: Float64Array): void {
    scores.view.set(both.subarray(0, count));
    memory.scoreError.view.set(both.subarray(count));
  }

  /** The places that each row sees. */
  function mask({ firstKey, keys }: KeyTile, ranges: RowRanges): TileView {
    return maskTile(ranges, { begin: firstKey, end: firstKey + keys }, low.view, high.view);
  }

  /** Makes scores NaN that a row does not see. */
  function hide(tile: KeyTile, ranges: RowRanges): void {
    const { interrupted } = mask(tile, ranges);
    for (let row = 0; row < padded; row++) {
      const first = row * tileRows;
      const [begin, end] = [low.view[row], high.view[row]];
      if (begin >= end) scores.view.fill(NaN, first, first + tileRows);
      else scores.view.fill(NaN, first, first + begin).fill(NaN, first + end, first + tileRows);
    }
    for (const { row, ranges } of interrupted)
      for (let key = 0; key < tileRows; key++)
        if (!hasKey(ranges, key)) scores.view[row * tileRows + key] = NaN;
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

  /** Finds each row's largest addend among the places that `low` and `high` give. */
  function findLargestAddends(): void {
    for (let i = 0; i < rows; i++)
      for (let key = low.view[i]; key < high.view[i]; key++)
        largestAddend[i] = Math.max(largestAddend[i], sizes[i * tileRows + key]);
  }

  function compute(tile: KeyTile): void {
    const both = kept.get(tile);
    if (both !== undefined) return recall(both);
    if (operands === undefined) throw new TypeError('no queries are loaded');
    loadKeys(operands.key, tile);
    const [q, k, s, error] = [queries, keyPanels, scores, memory.scoreError].map(
      ({ address }) => address,
    ) as [number, number, number, number];
    kernels.chainProduct(q, k, s, error, padded, qkDim, step === 0 ? qkDim : step);
    if (step === 0) memory.scoreError.view.fill(0);
    const products = memory.variance.address;
    kernels.product(queryUnits.address, keyUnits.address, products, padded, units, tileRows);
    const pairs = padded * tileRows;
    kernels.scoreErrors(error, products, pairs, perPartial * exponentUnit, perUnit * exponentUnit);
    if (softcap !== null) kernels.capScores(s, pairs, capFactor);
    if (addends !== null) add(addends, operands.head, tile);
  }

  return {
    factor,
    largestAddend,
    load: (head, firstRow, negligibleByRow) => {
      operands = head;
      firstQuery = firstRow;
      negligible = negligibleByRow;
      rows = negligibleByRow.length;
      padded = paddedRows(rows);
      kept.clear();
      queries.view.fill(0);
      queryUnits.view.fill(0);
      for (let i = 0; i < rows; i++) {
        const { first, values, units: unitsOfRows } = head.query.with(firstRow + i);
        const row = firstRow + i - first;
        queries.view.set(values.subarray(row * qkDim, (row + 1) * qkDim), i * qkDim);
        queryUnits.view.set(unitsOfRows.subarray(row * units, (row + 1) * units), i * units);
      }
    },
    score: (tile, ranges) => {
      compute(tile);
      hide(tile, ranges);
    },
    scan: (tiles, ranges) => {
      largestAddend.fill(0);
      memory.tables.view.fill(0, 0, rows << memory.tableBits);
      memory.largest.view.fill(-Infinity);
      memory.errors.view.fill(0);
      const blocks: Float64Array[] = [];
      for (const tile of tiles) {
        compute(tile);
        keep(tile);
        const block = (blocks[tile.block] ??= new Float64Array(rows).fill(-Infinity));
        forEachPass(mask(tile, ranges), () => {
          if (addends !== null) findLargestAddends();
          kernels.scanScores(memory.tile, padded, factor, binsPerOctave);
          for (let i = 0; i < rows; i++) block[i] = Math.max(block[i], memory.maxima.view[i]);
        });
      }
      return blocks;
    },
  };
}
