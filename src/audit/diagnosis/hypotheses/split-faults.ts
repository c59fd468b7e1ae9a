import type { HypothesisFamily, SampleRow } from '../hypothesis.js';
import { logSumExp, predictWeighted } from '../prediction.js';

const splitCounts = [2, 3, 4, 5, 6, 8, 16, 32] as const;
/** Keys that a split's length may be a multiple of. */
const splitTiles = [1, 64, 128] as const;

/** A wrong way to combine the results of splits: the weight of a split with that LSE, by the LSE of all. */
interface Combination {
  readonly id: string;
  readonly what: string;
  readonly weight: (lse: number, all: number, splits: number) => number;
  /** Whether weights are divided by their sum. */
  readonly isDivided?: boolean;
}

const combinations: readonly Combination[] = [
  {
    id: 'splits-averaged',
    what: 'averaged, whatever their row sums',
    weight: (_lse, _all, splits) => 1 / splits,
  },
  {
    id: 'splits-base-2',
    what: 'weighed by powers of two of their natural LSE',
    weight: (lse, all) => 2 ** (lse - all),
  },
  {
    id: 'splits-base-2',
    what: 'weighed by powers of two of their natural LSE, over the sum of these',
    weight: (lse, all) => 2 ** (lse - all),
    isDivided: true,
  },
  {
    id: 'splits-base-2',
    what: 'weighed by powers of e of their LSE in base 2, over the sum of these',
    weight: (lse, all) => Math.exp((lse - all) / Math.LN2),
    isDivided: true,
  },
  {
    id: 'splits-added',
    what: 'added, not averaged by their row sums',
    weight: () => 1,
  },
];

/** Lengths of the parts of a sequence's keys, each number of parts and length once. */
function splitLengths(keys: number): { readonly splits: number; readonly length: number }[] {
  const found = new Map<number, number>();
  for (const tile of splitTiles)
    for (const splits of splitCounts) {
      const length = Math.ceil(keys / splits / tile) * tile;
      if (length < keys && !found.has(length)) found.set(length, Math.ceil(keys / length));
    }
  return [...found].map(([length, splits]) => ({ splits, length }));
}

/** Partial results of splits of the keys combined wrongly. */
export const splitHypotheses: HypothesisFamily = function* ({ reader, shape }) {
  const longest = (reader.problem.sequences ?? [shape]).reduce(
    (most, one) => Math.max(most, one.keys),
    0,
  );
  for (const { id, what, weight, isDivided } of combinations)
    for (const { splits, length } of splitLengths(longest))
      yield {
        id,
        technique: null,
        statement: `the partial results of ${splits} splits of ${length} keys are ${what}`,
        cause: `the partial results of splits are ${what}`,
        predict: (row: SampleRow) => {
          const { firstKey, keys } = reader.place(row.row);
          const scores = reader.scores(row.row);
          const weights = new Float64Array(scores.length);
          const parts: {
            readonly begin: number;
            readonly lse: number;
            readonly part: Float64Array;
          }[] = [];
          for (let begin = firstKey; begin < firstKey + keys; begin += length) {
            const end = Math.min(begin + length, firstKey + keys);
            // A sink, behind the last key, is in the last part's sum.
            const isLast = end === shape.keys;
            const part = scores.subarray(begin, isLast ? scores.length : end);
            const lse = logSumExp(part);
            if (lse !== -Infinity) parts.push({ begin, lse, part });
          }
          if (parts.length < 2) return row.correct;
          const factors = parts.map(({ lse }) => weight(lse, row.denominator, splits));
          const sum = isDivided === true ? factors.reduce((a, b) => a + b, 0) : 1;
          parts.forEach(({ begin, lse, part }, i) =>
            part.forEach((s, j) => {
              weights[begin + j] = (factors[i] / sum) * Math.exp(s - lse);
            }),
          );
          return predictWeighted(row, {
            weights,
            values: reader.valuesOf(row.row, row.kv),
            lse: row.denominator,
          });
        },
      };
};
