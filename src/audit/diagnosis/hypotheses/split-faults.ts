import type { HypothesisFamily, SampleRow } from '../hypothesis.js';
import { cellKeys, logSumExp, predictWeighted } from '../prediction.js';
import type { RowReader } from '../row-reader.js';
import { createRowShares } from '../row-shares.js';

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

/** A part of a row's keys. */
interface Part {
  readonly begin: number;
  readonly scores: Float64Array;
  readonly lse: number;
}

/** The parts of a row that have keys, each of so many, by their number. */
function partsOf(reader: RowReader, row: number, length: number): ReadonlyMap<number, Part> {
  const { firstKey, keys } = reader.place(row);
  const scores = reader.scores(row);
  const parts = new Map<number, Part>();
  for (let begin = firstKey; begin < firstKey + keys; begin += length) {
    const end = Math.min(begin + length, firstKey + keys);
    // A sink, behind the last key, is in the last part's sum.
    const isLast = end === reader.shape.keys;
    const part = scores.subarray(begin, isLast ? scores.length : end);
    const lse = logSumExp(part);
    if (lse !== -Infinity) parts.set((begin - firstKey) / length, { begin, scores: part, lse });
  }
  return parts;
}

/** Parts of a row whose keys are too many to raise all scores to powers again, as `partsOf` has them; null where it must be done. */
function longParts(
  reader: RowReader,
  { row, denominator }: SampleRow,
  shares: Float64Array,
  length: number,
): Part[] | null {
  const { firstKey, keys } = reader.place(row);
  const isWhole = firstKey === 0 && keys === reader.shape.keys;
  if (!isWhole || shares.length !== keys) return null;
  const scores = reader.scores(row);
  const parts: Part[] = [];
  for (let begin = 0; begin < keys; begin += length) {
    const end = Math.min(begin + length, keys);
    let sum = 0;
    for (let j = begin; j < end; j++) sum += shares[j];
    const lse = denominator + Math.log(sum);
    if (sum > 0) parts.push({ begin, scores: scores.subarray(begin, end), lse });
  }
  return parts;
}

/** What a row of many keys becomes whose parts count by other factors: see `predictParts`. */
function predictLongParts(
  reader: RowReader,
  row: SampleRow,
  shares: Float64Array,
  parts: readonly Part[],
  factors: readonly number[],
) {
  const values = reader.valuesOf(row.row, row.kv);
  const lse = row.denominator;
  const ofShares = parts.map((part, i) => factors[i] * Math.exp(lse - part.lse));
  if (parts.every(({ begin }) => begin % cellKeys === 0)) {
    const cells = new Float64Array(Math.ceil(shares.length / cellKeys));
    parts.forEach(({ begin, scores }, i) => {
      const end = Math.ceil((begin + scores.length) / cellKeys);
      cells.fill(ofShares[i], begin / cellKeys, end);
    });
    const relative = { shares, cells, range: null };
    return predictWeighted(row, { weights: new Float64Array(0), relative, values, lse });
  }
  const weights = new Float64Array(shares.length);
  parts.forEach(({ begin, scores }, i) => {
    for (let j = begin; j < begin + scores.length; j++) weights[j] = ofShares[i] * shares[j];
  });
  return predictWeighted(row, { weights, values, lse });
}

/** What a row becomes where its parts count by other factors than e^(LSE − LSE of all). */
function predictParts(
  reader: RowReader,
  row: SampleRow,
  parts: readonly Part[],
  factors: readonly number[],
) {
  const weights = new Float64Array(reader.scores(row.row).length);
  parts.forEach(({ begin, scores, lse }, i) =>
    scores.forEach((s, j) => {
      weights[begin + j] = factors[i] * Math.exp(s - lse);
    }),
  );
  return predictWeighted(row, {
    weights,
    values: reader.valuesOf(row.row, row.kv),
    lse: row.denominator,
  });
}

/** Partial results of splits of the keys combined wrongly. */
export const splitHypotheses: HypothesisFamily = function* ({ reader, shape, isLong }) {
  const shares = isLong === true ? createRowShares(reader) : null;
  const longest = (reader.problem.sequences ?? [shape]).reduce(
    (most, one) => Math.max(most, one.keys),
    0,
  );
  const lengths = splitLengths(longest);
  for (const { id, what, weight, isDivided } of combinations)
    for (const { splits, length } of lengths)
      yield {
        id,
        technique: null,
        statement: `the partial results of ${splits} splits of ${length} keys are ${what}`,
        cause: `the partial results of splits are ${what}`,
        predict: (row: SampleRow) => {
          const ofKeys = shares?.(row);
          const long = ofKeys && longParts(reader, row, ofKeys, length);
          const parts = long ?? [...partsOf(reader, row.row, length).values()];
          if (parts.length < 2) return row.correct;
          const all = parts.map(({ lse }) => weight(lse, row.denominator, splits));
          const sum = isDivided === true ? all.reduce((a, b) => a + b, 0) : 1;
          const factors = all.map((factor) => factor / sum);
          return ofKeys && long
            ? predictLongParts(reader, row, ofKeys, parts, factors)
            : predictParts(reader, row, parts, factors);
        },
      };
  yield* neighbouringLses(reader, lengths);
};

/** Parts weighed by the LSEs of a neighbouring head, or of a neighbouring query. */
function* neighbouringLses(
  reader: RowReader,
  lengths: readonly { readonly splits: number; readonly length: number }[],
): ReturnType<HypothesisFamily> {
  const { heads, queries } = reader.shape;
  const moved = (row: number, of: 'head' | 'query', step: number) => {
    const [size, inner] = of === 'head' ? [heads, queries] : [queries, 1];
    const at = Math.floor(row / inner) % size;
    return row + (((at + step + size) % size) - at) * inner;
  };
  for (const of of ['head', 'query'] as const)
    for (const step of [1, -1])
      for (const { splits, length } of (of === 'head' ? heads : queries) < 2 ? [] : lengths) {
        const what = `weighed by the LSEs of the ${step === 1 ? 'next' : 'previous'} ${of}`;
        yield {
          id: `splits-lse-of-neighbouring-${of}`,
          technique: null,
          statement: `the partial results of ${splits} splits of ${length} keys are ${what}`,
          cause: `the partial results of splits are ${what}`,
          predict: (row: SampleRow) => {
            const parts = partsOf(reader, row.row, length);
            const others = partsOf(reader, moved(row.row, of, step), length);
            const own = [...parts.keys()].filter((part) => others.has(part));
            if (own.length < 2) return row.correct;
            const lses = own.map((part) => others.get(part)?.lse ?? -Infinity);
            const all = logSumExp(Float64Array.from(lses));
            return predictParts(
              reader,
              row,
              own.flatMap((part) => parts.get(part) ?? []),
              lses.map((lse) => Math.exp(lse - all)),
            );
          },
        };
      }
}
