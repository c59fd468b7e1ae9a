import type { KeyRange } from '../../src/problem/index.js';
import { tileRows, type Operand } from './operand.js';
import type { RowResult } from './row.js';
import type { ScoreConstants } from './score-constants.js';
import { loadTile, loadTransposedTile, type TileEngine } from './tile-engine.js';
import { clipRanges, scoreTile, tileSpan, weightTile } from './tile-steps.js';

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
 * get weight 0. The arrays of a tile are reused from call to call.
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
  visit: (tile: WeightTile) => void,
): void {
  const { kernels, vStride } = engine;
  loadTile(engine.queries.view, query.values, firstRow, query.dim, query.dim);
  const isUsable = rows.map(({ lse }) => Number.isFinite(lse));
  const usable = ranges.map((range, i) => (isUsable[i] ? range : { begin: 0, end: 0 }));
  const reference = rows.map(({ maximum }, i) =>
    isUsable[i] ? Math.round(maximum / Math.LN2) : 0,
  );
  // ∞ − ∞ times the weights of a row without keys would be NaN.
  const normalise = rows.map(({ lse }, i) =>
    isUsable[i] ? Math.exp(reference[i] * Math.LN2 - lse) : 0,
  );
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
      projections[index].set(engine.scores.view);
    });
    scoreTile(engine, keys, firstKey, constants);
    for (let i = 0; i < tileRows; i++) engine.reference.view[i] = reference[i] ?? 0;
    weightTile(engine, constants);
    for (let i = 0; i < ranges.length; i++) {
      const factor = normalise[i];
      for (let j = 0; j < tileRows; j++) engine.scores.view[i * tileRows + j] *= factor;
    }
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
}
