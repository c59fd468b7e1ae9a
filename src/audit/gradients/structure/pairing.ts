import { decodeTensor } from '../../../formats/index.js';
import { problemShape, type Problem } from '../../../problem/index.js';
import { ErrorSum } from './error-sum.js';
import { unitOf, type SummedGradient } from './gradient-structure.js';
import type { GradientStatistic } from './gradient-statistic.js';

/** Roundings of this very sum, relative to the sizes of its terms. */
const ownError = 2 ** -40;

/** Rows of a gradient projected on the tensor that it is of. */
function project(
  of: SummedGradient,
  tensor: Float64Array,
  [firstRow, endRow]: readonly [number, number],
  columns: number,
) {
  const { values } = of.compared;
  const sum = new ErrorSum(of.errors);
  let [sizes, longest] = [0, 0];
  for (let row = firstRow; row < endRow; row++) {
    let norm = 0;
    for (let i = row * columns; i < (row + 1) * columns; i++) {
      const term = values[i] * tensor[i];
      sum.add(i, term, tensor[i]);
      sizes += Math.abs(term);
      norm += tensor[i] * tensor[i];
    }
    sum.endRow(unitOf(of, row));
    longest = Math.max(longest, Math.sqrt(norm));
  }
  return { sum, sizes, longest };
}

/**
 * ⟨Q, dQ⟩ − ⟨K, dK⟩ of every head of K, relative to the sizes of the terms: 0 whatever the mask, the softcap or the bias, for
 * both are Σ dT·score. Heads with infinities or NaNs are left out.
 */
export function* pairingStatistics(
  problem: Problem,
  dq: SummedGradient,
  dk: SummedGradient,
  deviations: number,
): Generator<GradientStatistic> {
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim } = problemShape(problem);
  const [q, k] = [decodeTensor(problem.q), decodeTensor(problem.k)];
  for (let kvHead = 0; kvHead < batch * kvHeads; kvHead++) {
    const firstHead = Math.floor(kvHead / kvHeads) * heads + (kvHead % kvHeads) * groupSize;
    const ofQueries = project(
      dq,
      q,
      [firstHead * queries, (firstHead + groupSize) * queries],
      qkDim,
    );
    const ofKeys = project(dk, k, [kvHead * keys, (kvHead + 1) * keys], qkDim);
    const sizes = ofQueries.sizes + ofKeys.sizes;
    const common = dk.means.pairing?.[kvHead] ?? ofKeys.longest * dk.means.norm[kvHead];
    let difference = ofQueries.sum.signed - ofKeys.sum.signed;
    let threshold =
      ofQueries.sum.ofIndependent(deviations, 0) +
      ofKeys.sum.ofIndependent(deviations, common) +
      ownError * sizes;
    if (Math.abs(difference) > threshold) {
      difference -= ofQueries.sum.expected - ofKeys.sum.expected;
      const sign = difference < 0 ? -1 : 1;
      threshold =
        ofQueries.sum.ofFollowing(deviations, 0, sign) +
        ofKeys.sum.ofFollowing(deviations, common, -sign) +
        ownError * sizes;
    }
    if (!Number.isFinite(difference) || !(sizes > 0) || !Number.isFinite(threshold)) continue;
    yield {
      test: 'pairing',
      scope: 'head',
      head: kvHead,
      firstRow: 0,
      rows: keys,
      lastRow: keys - 1,
      column: null,
      statistic: difference / sizes,
      threshold: threshold / sizes,
    };
  }
}
