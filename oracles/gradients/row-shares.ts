import { tileRows, operandRow } from '../attention/operand.js';
import type { QueryRow, RowToSolve } from './exact-level.js';
import { addRounded } from './exact-sums.js';
import type { RowStatistics } from './row-statistics.js';
import type { SharedSums, GradientContext } from './shared-sums.js';
import type { Poison } from './special-row.js';
import type { Gradient, DerivativeTile, TileTargets } from './sums.js';
import type { GradientBlock } from './weigh-tile.js';

/** Sums of keys that the heads of a group add to, and the elements there that become NaN or infinite. */
export interface KeyTargets {
  readonly sums: TileTargets['keys'];
  readonly placeOf: TileTargets['placeOf'];
  readonly poison: Pick<Poison, 'key' | 'value'>;
}

/** The sums of dSink that a head's rows add to; null for a head without a sink. */
export function sinkSums({ rules, sink }: GradientContext, head: number): SharedSums | null {
  return rules.sinkOf(head) === null ? null : sink;
}

/** Adds a row's exactly known share of dBias, dSink and D. */
export function addExactShares(
  context: GradientContext,
  { operands: { head }, row, keys }: RowToSolve,
  { solved }: QueryRow,
  mean: Gradient,
): void {
  const { bias, shape } = context;
  const sink = sinkSums(context, head);
  const { scoreDerivatives, scales, meanRadius, meanSize, sinkShare } = solved;
  mean.values[row] = solved.mean;
  mean.radius[row] = meanRadius;
  mean.magnitude[row] = meanSize;
  const place = bias?.placesOf(head, row);
  if (place !== undefined)
    keys.visible.forEach((key, j) => {
      const value = scoreDerivatives.values[j];
      const error = scoreDerivatives.radius[j] + 2 ** -53 * Math.abs(value) + Number.MIN_VALUE;
      bias?.add(place(key), { value, error, size: scales[j] });
    });
  sink?.add(head % shape.heads, {
    value: -sinkShare * solved.mean,
    error:
      sinkShare * (meanRadius + 2 ** -50 * Math.abs(solved.mean)) +
      2 ** -160 * meanSize +
      2 ** -1070,
    size: sinkShare * meanSize,
  });
}

/** Adds the contributions of exact rows to dK and dV, in fp64. */
export function addExactKeys(
  { sums, placeOf }: KeyTargets,
  row: RowToSolve,
  { solved }: QueryRow,
): void {
  if (sums === null) return;
  const { weights, derivatives, cappedScales } = solved;
  const extent = cappedScales.reduce((most, x) => Math.max(most, x), 0);
  const query = operandRow(row.operands.query, row.row).slice();
  const dout = operandRow(row.operands.dout, row.row).slice();
  row.keys.visible.forEach((key, at) => {
    const to = placeOf(key);
    if (to < 0) return;
    addRounded(sums.dk, to, derivatives, { at, size: cappedScales[at], extent }, query);
    const size = weights.values[at];
    addRounded(sums.dv, to, weights, { at, size, extent: 1 }, dout);
  });
}

/** Adds the shares of a block's rows in dBias, dSink and D that fp64 knows. */
export function shareAdder(
  context: GradientContext,
  block: GradientBlock,
  statistics: RowStatistics,
  mean: Gradient,
): ((tile: DerivativeTile) => void) | null {
  const { bias, shape } = context;
  const { head } = block.operands;
  const sink = sinkSums(context, head);
  const { isUsable, relative, absolute, floor, sinkShare, weightError } = statistics;
  block.ranges.forEach((_, i) => {
    if (isUsable[i] === 0) return;
    const row = block.firstRow + i;
    mean.values[row] = statistics.mean[i];
    mean.radius[row] = statistics.meanRadius[i];
    mean.magnitude[row] = statistics.meanSize[i];
    const size = Math.abs(statistics.mean[i]);
    sink?.add(head % shape.heads, {
      value: -sinkShare[i] * statistics.mean[i],
      error: 2 * sinkShare[i] * (statistics.meanRadius[i] + weightError[i] * size) + floor[i],
      size: sinkShare[i] * statistics.meanSize[i],
    });
  });
  if (bias === null) return null;
  const placesOf = block.ranges.map((_, i) => bias.placesOf(head, block.firstRow + i));
  return ({ firstKey, derivatives, scales, weights }) => {
    block.ranges.forEach((ranges, i) => {
      if (isUsable[i] === 0) return;
      for (const { begin, end } of ranges)
        for (let key = Math.max(begin, firstKey); key < Math.min(end, firstKey + tileRows); key++) {
          const at = i * tileRows + key - firstKey;
          bias.add(placesOf[i](key), {
            value: derivatives[at],
            error: relative[i] * scales[at] + absolute[i] * weights[at] + floor[i],
            size: scales[at],
          });
        }
    });
  };
}
