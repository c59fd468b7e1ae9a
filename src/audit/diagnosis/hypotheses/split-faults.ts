import type { HypothesisFamily, SampleRow } from '../hypothesis.js';
import { logSumExp, predictWeighted } from '../prediction.js';

const splitCounts = [2, 3, 4, 6, 8, 16, 32] as const;

/** How the results of splits are combined wrongly: the weight of one with that LSE. */
const combinations = [
  {
    id: 'splits-averaged',
    what: 'averaged, whatever their row sums',
    weight: (_lse: number, _all: number, splits: number) => 1 / splits,
  },
  {
    id: 'splits-base-2',
    what: 'weighed by powers of two of their natural LSE',
    weight: (lse: number, all: number) => 2 ** (lse - all),
  },
  {
    id: 'splits-added',
    what: 'added, not averaged by their row sums',
    weight: () => 1,
  },
] as const;

/** Partial results of splits of the keys combined wrongly. */
export const splitHypotheses: HypothesisFamily = function* ({ reader, shape }) {
  for (const { id, what, weight } of combinations)
    for (const splits of splitCounts.filter((count) => count < shape.keys))
      yield {
        id,
        technique: null,
        statement: `the partial results of ${splits} splits are ${what}`,
        cause: `the partial results of splits are ${what}`,
        predict: (row: SampleRow) => {
          const scores = reader.scores(row.row);
          const size = Math.ceil(shape.keys / splits);
          const weights = new Float64Array(scores.length);
          for (let begin = 0; begin < scores.length; begin += size) {
            const part = scores.subarray(begin, begin + size);
            const lse = logSumExp(part);
            if (lse === -Infinity) continue;
            const factor = weight(lse, row.correct.lse, splits);
            part.forEach((s, j) => (weights[begin + j] = factor * Math.exp(s - lse)));
          }
          return predictWeighted(row, {
            weights,
            values: reader.values(row.kv),
            lse: row.correct.lse,
          });
        },
      };
};
