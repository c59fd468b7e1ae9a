import { doubleDouble } from '../../src/arith/index.js';
import { countKeys, maskTile, spanOfRows } from '../../src/problem/index.js';
import { float64Logarithm } from '../log2.js';
import type { QueryBlock } from './head-operands.js';
import { tileRows, dotError, gamma } from './operand.js';
import { emptyRow, type RowResult } from './row.js';
import type { Rules } from './rules.js';
import { scaledDown, withSink } from './sink.js';
import {
  loadTile,
  scoreTile,
  seeingRows,
  type TileEngine,
  type TileRows,
  weightTile,
} from './tile-engine.js';
import { dropWeights, loadAddends } from './tile-features.js';

/** Unit roundoff of fp64. */
const u = 2 ** -53;

/**
 * Relative error of a weight 2^f · 2^n of the tile kernels, the score taken as exact: 4u. It consists of
 * u for each of the last product and sum of Horner's rule and the errors of its earlier steps (1.1u),
 * the rounding of ln 2 (0.35u), the truncation of Taylor's series (0.05u), the rounding of f (0.35u),
 * all divided by the least result 2^-1/2 where it is below 1, and the double-double constant's own error
 * (2^-64 at the largest exponent allowed).
 */
export const weightRoundoff = 4 * u;

/** Exponents beyond this leave too few fraction bits; such a row goes to a slower level. */
export const largestExponent = 2 ** 40;

/**
 * The largest of each of the two products whose sum is an exponent with addends: the rests of both and the rounding
 * of the sum then come to less than 2^-12, as the rest of one product does within `largestExponent`.
 */
const largestSummand = 2 ** 38;

/** An upper bound on dropped weights: the tile kernels drop weights below 2^-1000 of a row's largest. */
const droppedWeight = 2 ** -999;

/** Sums of a row over the tiles of keys, beside those in the engine. */
interface TileSums {
  /** Per row: the sum of its weights, the most sums of tiles that follow one another, and the largest error of a dot product. */
  readonly total: Float64Array;
  readonly tiles: Float64Array;
  readonly scoreError: Float64Array;
  /** Per row: the largest rounding error of an addend. */
  readonly addendError: Float64Array;
  /** Per row: whether dropout keeps the weight of any key that it sees; all 1 without dropout. */
  readonly anyKept: Uint8Array;
}

/** Tiles whose sums are added one to the other; the sums of so many are added in turn. */
const tilesAtOnce = 128;

/** The most additions of tiles' sums that a weight goes through, of a row with so many tiles. */
function sumDepth(tiles: number): number {
  return tiles <= tilesAtOnce ? tiles : tilesAtOnce + Math.ceil(tiles / tilesAtOnce) + 1;
}

/**
 * Sums of rows over many tiles in two levels, so that roundings do not grow with the keys: from time to time the engine's sums are
 * taken into those of before, which are multiplied by powers of two as the engine's are when its references rise.
 */
class LongSums {
  readonly #engine: TileEngine;
  readonly #total: Float64Array;
  readonly #rows: number;
  #tiles = 0;
  /** The sums of before, none until there are so many tiles: of values, magnitudes and weights, and their references. */
  #before: {
    readonly sum: Float64Array;
    readonly magnitude: Float64Array;
    readonly total: Float64Array;
    readonly reference: Float64Array;
  } | null = null;

  constructor(engine: TileEngine, total: Float64Array, rows: number) {
    this.#engine = engine;
    this.#total = total;
    this.#rows = rows;
  }

  afterTile(): void {
    this.#tiles += 1;
    if (this.#tiles % tilesAtOnce === 0) this.#take();
  }

  /** Takes what is in the engine into the sums of before, and leaves zeros. */
  #take(): void {
    const { vStride, reference, sum, magnitude } = this.#engine;
    const length = this.#rows * vStride;
    this.#before ??= {
      sum: new Float64Array(length),
      magnitude: new Float64Array(length),
      total: new Float64Array(this.#rows),
      reference: new Float64Array(this.#rows).fill(-Infinity),
    };
    const before = this.#before;
    const add = (to: Float64Array, from: Float64Array, at: number, factor: number) => {
      to[at] = to[at] * factor + from[at];
      from[at] = 0;
    };
    for (let i = 0; i < this.#rows; i++) {
      const fall = before.reference[i] - reference.view[i];
      const factor = fall < -1022 || Number.isNaN(fall) ? 0 : 2 ** fall;
      before.reference[i] = reference.view[i];
      add(before.total, this.#total, i, factor);
      for (let at = i * vStride; at < (i + 1) * vStride; at++) {
        add(before.sum, sum.view, at, factor);
        add(before.magnitude, magnitude.view, at, factor);
      }
    }
  }

  /** Puts the sums of all tiles where those of a few would be. */
  finish(): void {
    if (this.#before === null) return;
    this.#take();
    this.#engine.sum.view.set(this.#before.sum);
    this.#engine.magnitude.view.set(this.#before.magnitude);
    this.#total.set(this.#before.total);
  }
}

/** Adds the values of a tile by its weights to the sums of some rows. */
function addValues(engine: TileEngine, { first, count }: TileRows): void {
  const { kernels, vStride, scores, values, factor } = engine;
  const skipped = 8 * vStride * first;
  const [ofTile, magnitudeOfTile, sum, magnitude] = [
    engine.tileSum,
    engine.tileMagnitude,
    engine.sum,
    engine.magnitude,
  ].map(({ address }) => address + skipped) as [number, number, number, number];
  const weights = scores.address + 8 * tileRows * first;
  const { address } = values;
  kernels.productWithMagnitude(weights, address, ofTile, magnitudeOfTile, count, tileRows, vStride);
  const factors = factor.address + 8 * first;
  kernels.accumulate(sum, ofTile, factors, count, vStride);
  kernels.accumulate(magnitude, magnitudeOfTile, factors, count, vStride);
}

/** Streams the keys that a block sees through the engine, tile by tile. */
function sumTiles(engine: TileEngine, block: QueryBlock, rules: Rules): TileSums {
  const { vStride, low, high } = engine;
  const { operands, firstRow, ranges } = block;
  const { query, keys, values } = operands;
  const { law, constants, kept } = rules;
  loadTile(engine.queries.view, query.tile(firstRow / tileRows), query.dim, query.dim);
  engine.reference.view.fill(-Infinity);
  engine.extent.view.fill(0);
  engine.maximum.view.fill(-Infinity);
  engine.sum.view.fill(0);
  engine.magnitude.view.fill(0);
  const total = new Float64Array(tileRows);
  const tiles = new Float64Array(tileRows);
  const scoreError = new Float64Array(tileRows);
  const addendError = new Float64Array(tileRows);
  const anyKept = new Uint8Array(tileRows).fill(kept === null ? 1 : 0);
  const sums = new LongSums(engine, total, ranges.length);
  const span = spanOfRows(ranges);
  const first = Math.floor(span.begin / tileRows) * tileRows;
  for (let firstKey = first; firstKey < span.end; firstKey += tileRows) {
    const tileKeys = { begin: firstKey, end: firstKey + tileRows };
    const { isSeen, interrupted } = maskTile(ranges, tileKeys, low.view, high.view);
    if (!isSeen) continue;
    const tile = firstKey / tileRows;
    const seeing = seeingRows(engine);
    scoreTile(engine, keys, firstKey, constants, seeing);
    loadAddends(engine, law, block, firstKey, addendError);
    weightTile(engine, { constants, isAdded: law.addend !== null }, interrupted);
    if (kept !== null)
      dropWeights(engine, kept, block, firstKey, { target: engine.scores.view, anyKept });
    loadTile(engine.values.view, values.tile(tile), values.dim, vStride);
    addValues(engine, seeing);
    for (let i = 0; i < ranges.length; i++) {
      if (low.view[i] >= high.view[i]) continue;
      total[i] = total[i] * engine.factor.view[i] + engine.tileTotal.view[i];
      tiles[i]++;
      scoreError[i] = Math.max(scoreError[i], dotError(query, firstRow + i, keys, tile));
    }
    sums.afterTile();
  }
  sums.finish();
  for (let i = 0; i < tiles.length; i++) tiles[i] = sumDepth(tiles[i]);
  return { total, tiles, scoreError, addendError, anyKept };
}

/** The quantities that determine the error of a row's weights: see `TileSums`, and the largest product in its exponents. */
export type RowTrust = Readonly<Record<'scoreError' | 'addendError' | 'tiles' | 'extent', number>>;

/**
 * The relative error of a row's weights and of their sum, the sink's included; infinite for a row that leaves the
 * range of the analysis.
 */
export function trustOf(
  { law, constants, sinkOf }: Rules,
  head: number,
  { scoreError, addendError, tiles, extent }: RowTrust,
): number {
  const exponentError =
    Math.abs(law.scale) * scoreError +
    (law.softcap === null ? 0 : law.softcap * 2 ** -50) +
    addendError;
  // exp(x) − 1 ≤ x + x² for x < 1
  const weightError =
    exponentError < 2 ** -10
      ? (exponentError + exponentError ** 2) * (1 + 2 ** -20) + weightRoundoff
      : Infinity;
  const largest = law.addend === null ? largestExponent : largestSummand;
  const sink = sinkOf(head);
  const inRange =
    extent <= largest && Number.isFinite(constants.capFactorHigh) && sink?.weight !== null;
  // The sink's sum is one more, and its own weight is within that of the keys.
  return inRange ? weightError + gamma(tileRows + tiles + (sink === null ? 0 : 1)) : Infinity;
}

/** ln(sum · 2^reference) with its radius, for a sum with relative error `trusted`. */
function logarithmOfSum(sum: number, reference: number, trusted: number) {
  const logarithm = float64Logarithm(sum);
  // reference · ln 2 with ln 2 = high + low, high of 32 bits so that the product is exact.
  const value =
    reference * 0.6931471803691238 + (reference * 1.9082149292705877e-10 + logarithm.value);
  const radius =
    trusted * (1 + 2 ** -8) +
    logarithm.radius +
    4 * u * (Math.abs(value) + Math.abs(logarithm.value));
  return {
    value,
    radius: Math.abs(reference) <= 2 ** 20 ? radius : radius + 4 * u * Math.abs(reference),
  };
}

/**
 * Up to 64 rows in fp64 with a proven radius, streaming over the keys tile by tile. Rows without a visible
 * key give out 0, and LSE −∞ or that of their sink. A row that leaves the range of the error analysis comes
 * back with an infinite or NaN radius. Infinities and NaNs of the operands count as 0 here.
 */
export function tileLevel(engine: TileEngine, block: QueryBlock, rules: Rules): RowResult[] {
  const { vStride } = engine;
  const { operands, ranges } = block;
  const { head, values } = operands;
  const { total, tiles, scoreError, addendError, anyKept } = sumTiles(engine, block, rules);
  const sink = rules.sinkOf(head);
  const share = rules.kept?.share ?? 1;
  // The quotient's rounding; of the sink's sum and of the product with the share, too.
  const roundings = sink === null && rules.kept === null ? 2 * u : 6 * u;
  return ranges.map((ofRow, i) => {
    if (ofRow.length === 0) return emptyRow(values.dim, sink);
    const start = i * vStride;
    const out = new Float64Array(values.dim);
    const magnitude = new Float64Array(values.dim);
    const outRadius = new Float64Array(values.dim);
    const count = countKeys(ofRow);
    const trusted = trustOf(rules, head, {
      scoreError: scoreError[i],
      addendError: addendError[i],
      tiles: tiles[i],
      extent: engine.extent.view[i],
    });
    const relative = 2 * trusted * (1 + 2 ** -8) + roundings;
    const reference = engine.reference.view[i];
    const { sum, lift } = withSink(doubleDouble(total[i]), reference, sink);
    const divisor = sum.high * share;
    for (let c = 0; c < values.dim; c++) {
      out[c] = scaledDown(engine.sum.view[start + c] / divisor, lift);
      magnitude[c] = scaledDown(engine.magnitude.view[start + c] / divisor, lift);
      const largest = anyKept[i] === 0 ? 0 : values.columnLargest[c];
      const dropped = (count * (droppedWeight * largest + 2 ** -1070) * 2) / share;
      const floor = scaledDown(dropped, lift) + (lift === 0 ? 2 ** -1074 : 2 ** -1073);
      outRadius[c] =
        magnitude[c] === 0 && out[c] === 0 && largest === 0
          ? 0
          : // Beyond the range of the analysis weights can be anything, negative too.
            relative * (1 + 4 * relative) * Math.abs(magnitude[c]) + floor;
    }
    const denominator = logarithmOfSum(sum.high, reference + lift, trusted);
    const lse = sink?.inLse === false ? logarithmOfSum(total[i], reference, trusted) : denominator;
    return {
      out,
      outRadius,
      magnitude,
      lse: lse.value,
      lseRadius: lse.radius,
      maximum: engine.maximum.view[i] * Math.LN2,
      denominator: denominator.value,
    };
  });
}
