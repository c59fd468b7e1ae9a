import { countKeys, maskTile, spanOfRows, type ScoreLaw } from '../../src/problem/index.js';
import { naturalLogarithmOfNumber } from '../fixed-point.js';
import { dotError, gamma, tileRows, type QueryBlock } from './operand.js';
import type { RowResult } from './row.js';
import type { ScoreConstants } from './scores.js';
import { loadTile, scoreTile, type TileEngine, weightTile } from './tile-engine.js';

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
export const largestExponent = 2 ** 40;

/** Everything below 2^-1000 of a row's largest weight is dropped by the tile kernels. */
const droppedWeight = 2 ** -999;

/**
 * Up to 64 rows in fp64 with a proven radius, streaming over the keys tile by tile. Rows without a
 * visible key give out 0 and LSE −∞. A row that leaves the range of the error analysis comes back
 * with an infinite or NaN radius. Infinities and NaNs of the operands count as 0 here.
 */
export function tileLevel(
  engine: TileEngine,
  { operands: { query, keys, values }, firstRow, ranges }: QueryBlock,
  law: ScoreLaw,
  constants: ScoreConstants,
): RowResult[] {
  const { kernels, vStride, low, high } = engine;
  loadTile(engine.queries.view, query.values, firstRow, query.dim, query.dim);
  engine.reference.view.fill(-Infinity);
  engine.extent.view.fill(0);
  engine.maximum.view.fill(-Infinity);
  engine.sum.view.fill(0);
  engine.magnitude.view.fill(0);
  const total = new Float64Array(tileRows);
  const tiles = new Float64Array(tileRows);
  const scoreError = new Float64Array(tileRows);
  const span = spanOfRows(ranges);
  const first = Math.floor(span.begin / tileRows) * tileRows;
  for (let firstKey = first; firstKey < span.end; firstKey += tileRows) {
    const tileKeys = { begin: firstKey, end: firstKey + tileRows };
    const { isSeen, interrupted } = maskTile(ranges, tileKeys, low.view, high.view);
    if (!isSeen) continue;
    const tile = firstKey / tileRows;
    scoreTile(engine, keys, firstKey, constants);
    weightTile(engine, constants, interrupted);
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
      if (low.view[i] >= high.view[i]) continue;
      total[i] = total[i] * engine.factor.view[i] + engine.tileTotal.view[i];
      tiles[i]++;
      scoreError[i] = Math.max(scoreError[i], dotError(query, firstRow + i, keys, tile));
    }
  }
  return ranges.map((ofRow, i) => {
    const start = i * vStride;
    const out = new Float64Array(values.dim);
    const magnitude = new Float64Array(values.dim);
    const outRadius = new Float64Array(values.dim);
    if (ofRow.length === 0)
      return { out, outRadius, magnitude, lse: -Infinity, lseRadius: 0, maximum: -Infinity };
    const l = total[i];
    const count = countKeys(ofRow);
    const exponentError =
      Math.abs(law.scale) * scoreError[i] + (law.softcap === null ? 0 : law.softcap * 2 ** -50);
    // exp(x) − 1 ≤ x + x² for x < 1
    const weightError =
      exponentError < 2 ** -10
        ? (exponentError + exponentError ** 2) * (1 + 2 ** -20) + weightRoundoff
        : Infinity;
    const sumError = gamma(tileRows + tiles[i]);
    const inRange =
      engine.extent.view[i] <= largestExponent && Number.isFinite(constants.capFactorHigh);
    const trusted = inRange ? weightError + sumError : Infinity;
    const relative = 2 * trusted * (1 + 2 ** -8) + 2 * u;
    for (let c = 0; c < values.dim; c++) {
      out[c] = engine.sum.view[start + c] / l;
      magnitude[c] = engine.magnitude.view[start + c] / l;
      const largest = values.columnLargest[c];
      const floor = count * (droppedWeight * largest + 2 ** -1070) * 2 + 2 ** -1074;
      outRadius[c] =
        magnitude[c] === 0 && out[c] === 0 && largest === 0
          ? 0
          : relative * (1 + 4 * relative) * magnitude[c] + floor;
    }
    const logarithm = naturalLogarithmOfNumber(l);
    const reference = engine.reference.view[i];
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
      maximum: engine.maximum.view[i] * Math.LN2,
    };
  });
}
