import {
  describedContract,
  mergeParts,
  outputRounding,
  type ContractDescription,
  type DescribedCause,
  type MeasuredQuantities,
} from '../../../../src/audit/index.js';
import { quantities } from '../../../../src/problem/index.js';
import { headParts, mergeShape, partOfMerge, type MergeProblem } from './merge-problem.js';

/** The weight of a half, before it is divided by their sum. */
type Weight = NonNullable<Parameters<typeof mergeParts>[1]>;

const roundoff = 2 ** -24;

/**
 * The relative error of a weight in fp32: l − m rounds, and l·log2 e and m·log2 e do; the exponential errs by two ulps, and the sum
 * and the quotient round. Doubled, since weights stand above and below the bar.
 */
function weightError(sizes: readonly number[]): number {
  const largest = Math.max(...sizes.filter((x) => x < Infinity), 0);
  return 2 * roundoff * (8 * largest + 16);
}

/** The exact merge and the bounds of one in fp32; or those of a merge with other weights. */
export function measureMerge(
  { heads, rows: ofHead, dim, format, halves }: MergeProblem,
  weight?: Weight,
): MeasuredQuantities {
  const rows = heads * ofHead;
  const [a, b] = halves;
  const exact = mergeParts(
    {
      splits: 2,
      rows,
      dim,
      out: Float64Array.of(...a.out, ...b.out),
      lse: Float64Array.of(...a.lse, ...b.lse),
    },
    weight,
  );
  const error = Float64Array.from({ length: rows }, (_, row) =>
    weightError([Math.abs(a.lse[row]), Math.abs(b.lse[row])]),
  );
  const inner = exact.magnitude.map(
    (size, i) => error[Math.floor(i / dim)] * size + exact.outRadius[i],
  );
  const rounding = inner.map((x, i) => outputRounding(format, exact.out[i], x));
  const ofLse = exact.lse.map((x, row) =>
    Number.isFinite(x) ? error[row] + 4 * roundoff * Math.abs(x) + exact.lseRadius[row] : 0,
  );
  const none = (like: Float64Array) => new Float64Array(like.length);
  return {
    out: {
      exact: { values: exact.out, radius: exact.outRadius, magnitude: exact.magnitude },
      bound: {
        total: inner.map((x, i) => x + rounding[i]),
        systematic: inner,
        known: none(inner),
        deviation: rounding.map((x) => x / Math.sqrt(3)),
      },
    },
    lse: {
      exact: { values: exact.lse, radius: exact.lseRadius, magnitude: null },
      bound: { total: ofLse, systematic: ofLse, known: none(ofLse), deviation: none(ofLse) },
    },
  };
}

const natural: Weight = (lse, largest) => Math.exp(lse - largest);

/** Merges with other weights. */
function* otherWeights(problem: MergeProblem): Generator<DescribedCause> {
  const cause = (id: string, sentence: string, weight: Weight) => ({
    id,
    sentence,
    measured: measureMerge(problem, weight),
  });
  yield cause(
    'weights-base-2',
    'the halves are merged with weights 2^LSE',
    (lse, largest) => 2 ** (lse - largest),
  );
  yield cause('weights-equal', 'the halves are merged with equal weights', () => 1);
  for (const half of [0, 1])
    yield cause('half-left-out', `half ${half} is left out of the merge`, (lse, largest, split) =>
      split === half ? 0 : natural(lse, largest, split),
    );
}

/** A merge of two partial results, in words and functions of its own. */
export const mergeDescription: ContractDescription<MergeProblem> = {
  quantities,
  shapeOf: mergeShape,
  partsOf: headParts,
  partOf: partOfMerge,
  measure: (problem) => measureMerge(problem),
  causes: [otherWeights],
  words: { arithmetic: 'a merge in fp32' },
};

/** The contract of a merge of two partial results. */
export const mergeContract = describedContract(mergeDescription);
