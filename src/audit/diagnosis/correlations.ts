import { countKeys } from '../../problem/index.js';
import type { HypothesisContext, SampleRow } from './hypothesis.js';
import type { RowDamage } from './row-damage.js';
import { damageOf } from './row-sample.js';
import type { RowReader } from './row-reader.js';

/** Least |rank correlation| worth a mention, and the fewest rows that give one. */
const noticeable = 0.6;
const fewestRows = 12;

/** Average ranks: equal values share theirs. */
function ranks(values: readonly number[]): number[] {
  const order = [...values.keys()].sort((a, b) => values[a] - values[b]);
  const result = new Array<number>(values.length).fill(0);
  for (let i = 0; i < order.length;) {
    let end = i;
    while (end < order.length && values[order[end]] === values[order[i]]) end++;
    for (let k = i; k < end; k++) result[order[k]] = (i + end - 1) / 2;
    i = end;
  }
  return result;
}

/** Spearman's rank correlation, ties averaged; 0 when one side is constant. */
export function rankCorrelation(a: readonly number[], b: readonly number[]): number {
  const [x, y] = [ranks(a), ranks(b)];
  const mean = (x.length - 1) / 2;
  let cross = 0;
  let xx = 0;
  let yy = 0;
  x.forEach((value, i) => {
    cross += (value - mean) * (y[i] - mean);
    xx += (value - mean) ** 2;
    yy += (y[i] - mean) ** 2;
  });
  return xx === 0 || yy === 0 ? 0 : cross / Math.sqrt(xx * yy);
}

/** How far the maximum of the first block visited, of 128 keys, lies below the row's. */
function lagBehindMaximum(reader: RowReader, row: SampleRow, fromLast: boolean): number {
  const { begin, end } = row.span;
  if (begin === end) return 0;
  const scores = reader.scores(row.row);
  const block = Math.floor((fromLast ? end - 1 : begin) / 128) * 128;
  const largest = (values: Float64Array) => values.reduce((x, y) => Math.max(x, y), -Infinity);
  return largest(scores) - largest(scores.subarray(block, block + 128));
}

/** What the size of the damage goes with, over the damaged rows of the sample; for the unexplained. */
export function describeCorrelations(
  { sample, reader }: HypothesisContext,
  damage: RowDamage,
): string[] {
  const rows = sample.filter((row) => row.damaged);
  if (rows.length < fewestRows) return [];
  const sizes = rows.map(({ row }) => damageOf(damage, row));
  const quantities: readonly (readonly [string, (row: SampleRow) => number])[] = [
    ['the number of visible keys', ({ ranges }) => countKeys(ranges)],
    [
      'the row maximum',
      ({ row }) => reader.scores(row).reduce((a, b) => Math.max(a, b), -Infinity),
    ],
    [
      "the row maximum's lag over blocks visited last to first",
      (row) => lagBehindMaximum(reader, row, true),
    ],
    [
      "the row maximum's lag over blocks visited first to last",
      (row) => lagBehindMaximum(reader, row, false),
    ],
  ];
  return quantities.flatMap(([name, quantity]) => {
    const correlation = rankCorrelation(rows.map(quantity), sizes);
    return Math.abs(correlation) < noticeable
      ? []
      : [
          `the error ${correlation > 0 ? 'grows' : 'shrinks'} with ${name} (rank correlation ${correlation.toFixed(2)})`,
        ];
  });
}
