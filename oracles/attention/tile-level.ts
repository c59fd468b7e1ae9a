import type { KeyRange } from '../../src/problem.js';
import { naturalLogarithmOfNumber } from '../logarithm.js';
import { tileRows, type Operand } from './operand.js';
import type { RowResult, ScoreLaw } from './row.js';
import type { ScoreConstants } from './score-constants.js';
import { loadTile, loadTransposedTile, type TileEngine } from './tile-engine.js';

/** Unit roundoff of fp64. */
const u = 2 ** -53;

/**
 * Relative error of a weight 2^f · 2^n of the tile kernels, the score taken as exact: 4u. It is made
 * of u for each of the last product and sum of Horner's rule and what its earlier steps leave
 * (1.1u), the rounding of ln 2 (0.35u), the truncation of Taylor's series (0.05u), the rounding of f
 * (0.35u), all divided by the least result 2^-1/2 where it is below 1, and the double-double
 * constant's own error (2^-64 at the largest exponent allowed).
 */
export const weightRoundoff = 4 * u;

/** Exponents beyond this leave too few fraction bits; such a row goes to a slower level. */
const largestExponent = 2 ** 40;

/** Everything below 2^-1000 of a row's largest weight is dropped by the tile kernels. */
const droppedWeight = 2 ** -999;

/** n·u / (1 − n·u): the relative error of n roundings to nearest (Higham, Lemma 3.1). */
function gamma(n: number): number {
  return (n * u) / (1 - n * u);
}

/**
 * Whether the fp64 dot products of one query with one tile of keys are exact: every product is a
 * multiple of 2^(qBit + kBit), so every partial sum is an integer of at most 53 bits times that.
 */
export function isExactDot(query: Operand, row: number, keys: Operand, tile: number): boolean {
  const unit = query.lowestBit[row]! + keys.tileLowestBit[tile]!;
  if (unit === Infinity) return true;
  const total = keys.dim * query.largest[row]! * keys.tileLargest[tile]!;
  return unit >= -1074 && total * (1 + 2 ** -50) <= 2 ** (unit + 53) && Number.isFinite(total);
}

/**
 * A bound on the error of the fp64 dot products of one query with one tile of keys. P = ‖q‖·max‖k‖
 * bounds every partial sum. Terms that are multiples of ulp(P) add up exactly; a term with lower
 * bits causes one rounding each time the partial sum then reaches a binade it had not reached since,
 * which together is at most ulp(P) ≤ 2^-52·P. So the error is at most their number times that, and
 * never more than γ(d)·P.
 */
export function dotError(query: Operand, row: number, keys: Operand, tile: number): number {
  if (isExactDot(query, row, keys, tile)) return 0;
  const { dim } = query;
  const largest = query.norm[row]! * keys.tileNorm[tile]!;
  const underflow = dim * 2 ** -1073;
  if (!(largest < 2 ** 1000)) return Infinity;
  const ulpExponent = Math.floor(Math.log2(largest * (1 + 2 ** -40))) - 51;
  const threshold = ulpExponent - keys.tileLowestBit[tile]!;
  let inexactTerms = 0;
  for (let at = row * dim; at < (row + 1) * dim; at++)
    if (query.bit[at]! < threshold) inexactTerms++;
  return Math.min(inexactTerms * 2 ** -52, gamma(dim)) * largest + underflow;
}

/** Raw scores of 64 queries (loaded in the engine) against the tile of keys at `firstKey`. */
function scoreTile(engine: TileEngine, keys: Operand, firstKey: number, constants: ScoreConstants) {
  const { kernels, queries, keysTransposed, scores } = engine;
  loadTransposedTile(keysTransposed.view, keys.values, firstKey, keys.dim);
  kernels.product(
    queries.address,
    keysTransposed.address,
    scores.address,
    tileRows,
    keys.dim,
    tileRows,
  );
  if (constants.softcapped)
    kernels.capScores(scores.address, tileRows * tileRows, constants.capFactorHigh);
}

/** Clips each row's range of keys to the tile at `firstKey`; returns whether any row sees it. */
function clipRanges(engine: TileEngine, ranges: readonly KeyRange[], firstKey: number): boolean {
  const { low, high } = engine;
  let seen = false;
  for (let i = 0; i < tileRows; i++) {
    const range = ranges[i] ?? { begin: 0, end: 0 };
    low.view[i] = Math.max(range.begin - firstKey, 0);
    high.view[i] = Math.min(range.end - firstKey, tileRows);
    if (low.view[i]! < high.view[i]!) seen = true;
  }
  return seen;
}

function weightTile(engine: TileEngine, constants: ScoreConstants): void {
  const { kernels, scores, low, high, reference, factor, extent, maximum, tileTotal } = engine;
  kernels.weights(
    scores.address,
    tileRows,
    tileRows,
    constants.factorHigh,
    constants.factorLow,
    low.address,
    high.address,
    reference.address,
    factor.address,
    extent.address,
    maximum.address,
    tileTotal.address,
  );
}

/** First and last key tile that any of the rows sees, as [first, end) in keys. */
function tileSpan(ranges: readonly KeyRange[]): KeyRange {
  let begin = Infinity;
  let end = 0;
  for (const range of ranges) {
    if (range.begin >= range.end) continue;
    begin = Math.min(begin, range.begin);
    end = Math.max(end, range.end);
  }
  return { begin: begin === Infinity ? 0 : Math.floor(begin / tileRows) * tileRows, end };
}

/**
 * Up to 64 rows in fp64 with a proven radius, streaming over the keys tile by tile. Rows without a
 * visible key give out 0 and LSE −∞. A row that leaves the range of the error analysis comes back
 * with an infinite or NaN radius. Infinities and NaNs of the operands count as 0 here.
 */
export function tileLevel(
  engine: TileEngine,
  query: Operand,
  keys: Operand,
  values: Operand,
  firstRow: number,
  ranges: readonly KeyRange[],
  law: ScoreLaw,
  constants: ScoreConstants,
): RowResult[] {
  const { kernels, vStride } = engine;
  loadTile(engine.queries.view, query.values, firstRow, query.dim, query.dim);
  engine.reference.view.fill(-Infinity);
  engine.extent.view.fill(0);
  engine.maximum.view.fill(-Infinity);
  engine.sum.view.fill(0);
  engine.magnitude.view.fill(0);
  const total = new Float64Array(tileRows);
  const tiles = new Float64Array(tileRows);
  const scoreError = new Float64Array(tileRows);
  const span = tileSpan(ranges);
  for (let firstKey = span.begin; firstKey < span.end; firstKey += tileRows) {
    if (!clipRanges(engine, ranges, firstKey)) continue;
    const tile = firstKey / tileRows;
    scoreTile(engine, keys, firstKey, constants);
    weightTile(engine, constants);
    loadTile(engine.values.view, values.values, firstKey, values.dim, vStride);
    kernels.productWithMagnitude(
      engine.scores.address,
      engine.values.address,
      engine.tileSum.address,
      engine.tileMagnitude.address,
      tileRows,
      tileRows,
      vStride,
    );
    const { address } = engine.factor;
    kernels.accumulate(engine.sum.address, engine.tileSum.address, address, tileRows, vStride);
    kernels.accumulate(
      engine.magnitude.address,
      engine.tileMagnitude.address,
      address,
      tileRows,
      vStride,
    );
    for (let i = 0; i < ranges.length; i++) {
      if (engine.low.view[i]! >= engine.high.view[i]!) continue;
      total[i] = total[i]! * engine.factor.view[i]! + engine.tileTotal.view[i]!;
      tiles[i]!++;
      scoreError[i] = Math.max(scoreError[i]!, dotError(query, firstRow + i, keys, tile));
    }
  }
  return ranges.map((range, i) => {
    const start = i * vStride;
    const out = new Float64Array(values.dim);
    const magnitude = new Float64Array(values.dim);
    const outRadius = new Float64Array(values.dim);
    if (range.begin >= range.end)
      return { out, outRadius, magnitude, lse: -Infinity, lseRadius: 0, maximum: -Infinity };
    const l = total[i]!;
    const exponentError =
      Math.abs(law.scale) * scoreError[i]! + (law.softcap === null ? 0 : law.softcap * 2 ** -50);
    // exp(x) − 1 ≤ x + x² for x < 1
    const weightError =
      exponentError < 2 ** -10
        ? (exponentError + exponentError ** 2) * (1 + 2 ** -20) + weightRoundoff
        : Infinity;
    const sumError = gamma(tileRows + tiles[i]!);
    const inRange =
      engine.extent.view[i]! <= largestExponent && Number.isFinite(constants.capFactorHigh);
    const trusted = inRange ? weightError + sumError : Infinity;
    const relative = 2 * trusted * (1 + 2 ** -8) + 2 * u;
    for (let c = 0; c < values.dim; c++) {
      out[c] = engine.sum.view[start + c]! / l;
      magnitude[c] = engine.magnitude.view[start + c]! / l;
      const largest = values.columnLargest[c]!;
      const floor =
        (range.end - range.begin) * (droppedWeight * largest + 2 ** -1070) * 2 + 2 ** -1074;
      outRadius[c] =
        magnitude[c] === 0 && out[c] === 0 && largest === 0
          ? 0
          : relative * (1 + 4 * relative) * magnitude[c]! + floor;
    }
    const logarithm = naturalLogarithmOfNumber(l);
    const reference = engine.reference.view[i]!;
    // reference · ln 2 with ln 2 = high + low, high of 32 bits so that the product is exact.
    const lse =
      reference * 0.6931471803691238 + (reference * 1.9082149292705877e-10 + logarithm.value);
    const lseRadius =
      trusted * (1 + 2 ** -8) +
      logarithm.radius +
      4 * u * (Math.abs(lse) + Math.abs(logarithm.value));
    return {
      out,
      outRadius,
      magnitude,
      lse,
      lseRadius:
        Math.abs(reference) <= 2 ** 20 ? lseRadius : lseRadius + 4 * u * Math.abs(reference),
      maximum: engine.maximum.view[i]! * Math.LN2,
    };
  });
}

/** Normalised weights p / Σ p of 64 rows against one tile of 64 keys, for statistics. */
export interface WeightTile {
  readonly firstRow: number;
  readonly rows: number;
  readonly firstKey: number;
  readonly keys: number;
  /** Elements from one row to the next, in `weights` and `projections`. */
  readonly stride: number;
  /** [rows × stride]; 0 for a masked key. */
  readonly weights: Float64Array;
  /** Per projected matrix X: X_i · v_j, [rows × stride]. */
  readonly projections: readonly Float64Array[];
}

/**
 * Visits the weights of up to 64 rows tile by tile, to about 2^-44 relative accuracy (no radius), with
 * the inner products of each row of `projected` (each [queries × vDim]) with each key's value.
 * `rows` gives each row's LSE and maximum as an earlier pass found them; rows whose LSE is not finite
 * get weight 0. `deviation` ([queries × vDim], as `out`) receives Σ_j w_ij |v_j − out_i|. The arrays of
 * a tile are reused from call to call.
 */
export function visitWeightTiles(
  engine: TileEngine,
  query: Operand,
  keys: Operand,
  values: Operand,
  firstRow: number,
  ranges: readonly KeyRange[],
  rows: readonly Pick<RowResult, 'lse' | 'maximum'>[],
  constants: ScoreConstants,
  projected: readonly Float64Array[],
  out: Float64Array,
  deviation: Float64Array,
  visit: (tile: WeightTile) => void,
): void {
  const { kernels, vStride } = engine;
  engine.sum.view.fill(0);
  loadTile(engine.queries.view, query.values, firstRow, query.dim, query.dim);
  const usable = ranges.map((range, i) =>
    Number.isFinite(rows[i]!.lse) ? range : { begin: 0, end: 0 },
  );
  const reference = rows.map((row) => Math.round(row.maximum / Math.LN2));
  const normalise = rows.map((row, i) => Math.exp(reference[i]! * Math.LN2 - row.lse));
  engine.extent.view.fill(0);
  engine.maximum.view.fill(-Infinity);
  const projections = projected.map(() => new Float64Array(tileRows * tileRows));
  const span = tileSpan(usable);
  for (let firstKey = span.begin; firstKey < span.end; firstKey += tileRows) {
    if (!clipRanges(engine, usable, firstKey)) continue;
    loadTransposedTile(engine.valuesTransposed.view, values.values, firstKey, values.dim);
    projected.forEach((matrix, index) => {
      loadTile(engine.tileSum.view, matrix, firstRow, values.dim, vStride);
      kernels.product(
        engine.tileSum.address,
        engine.valuesTransposed.address,
        engine.scores.address,
        tileRows,
        vStride,
        tileRows,
      );
      projections[index]!.set(engine.scores.view);
    });
    scoreTile(engine, keys, firstKey, constants);
    for (let i = 0; i < tileRows; i++) engine.reference.view[i] = reference[i] ?? 0;
    weightTile(engine, constants);
    for (let i = 0; i < ranges.length; i++) {
      const factor = normalise[i]!;
      for (let j = 0; j < tileRows; j++) engine.scores.view[i * tileRows + j]! *= factor;
    }
    loadTile(engine.values.view, values.values, firstKey, values.dim, vStride);
    loadTile(engine.magnitude.view, out, firstRow, values.dim, vStride);
    kernels.deviation(
      engine.scores.address,
      engine.values.address,
      engine.magnitude.address,
      engine.tileSum.address,
      tileRows,
      tileRows,
      vStride,
    );
    engine.factor.view.fill(1);
    kernels.accumulate(
      engine.sum.address,
      engine.tileSum.address,
      engine.factor.address,
      tileRows,
      vStride,
    );
    visit({
      firstRow,
      rows: ranges.length,
      firstKey,
      keys: Math.min(tileRows, keys.rows - firstKey),
      stride: tileRows,
      weights: engine.scores.view,
      projections,
    });
  }
  for (let i = 0; i < ranges.length; i++)
    deviation.set(
      engine.sum.view.subarray(i * vStride, i * vStride + values.dim),
      (firstRow + i) * values.dim,
    );
}
