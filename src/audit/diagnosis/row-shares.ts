import type { SampleRow } from './hypothesis.js';
import type { RowReader } from './row-reader.js';

/** Shares that are kept: 32 MiB. */
const keptShares = 2 ** 22;

/** Tells the shares of a row's keys, and of a sink behind them, in its sum: 0 for keys that it does not see. Do not write to them. */
export type RowShares = (row: Pick<SampleRow, 'row' | 'denominator'>) => Float64Array;

/** Makes a function that tells exp(score − logarithm of the row sum) of the keys of rows, and keeps those of some rows. */
export function createRowShares(reader: RowReader): RowShares {
  const known = new Map<number, Float64Array>();
  return ({ row, denominator }) => {
    const found = known.get(row);
    if (found !== undefined) return found;
    const scores = reader.scores(row);
    const shares = new Float64Array(scores.length);
    for (let j = 0; j < shares.length; j++) shares[j] = Math.exp(scores[j] - denominator);
    if ((known.size + 1) * shares.length > keptShares) known.clear();
    known.set(row, shares);
    return shares;
  };
}
