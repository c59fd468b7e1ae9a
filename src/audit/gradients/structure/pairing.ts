import { decodeTensor } from '../../../formats/index.js';
import { problemShape, type Problem } from '../../../problem/index.js';
import { ErrorSum } from './error-sum.js';
import type { SummedGradient } from './gradient-structure.js';
import type { GradientStatistic } from './gradient-statistic.js';

/** Roundings of this very sum, relative to the sizes of its terms. */
const ownError = 2 ** -40;

/** Rows of a gradient projected on the tensor that it is of. */
function project(
  { compared, bound, units }: SummedGradient,
  tensor: Float64Array,
  [firstRow, endRow]: readonly [number, number],
  columns: number,
) {
  const sum = new ErrorSum();
  let [total, sizes, longest] = [0, 0, 0];
  for (let row = firstRow; row < endRow; row++) {
    let [systematic, deviation, norm] = [0, 0, 0];
    for (let i = row * columns; i < (row + 1) * columns; i++) {
      const term = compared.values[i] * tensor[i];
      const size = Math.abs(tensor[i]);
      total += term;
      sizes += Math.abs(term);
      systematic += bound.systematic[i] * size;
      deviation += bound.deviation[i] * size;
      norm += size * size;
    }
    longest = Math.max(longest, Math.sqrt(norm));
    const unit = units.isShared[row] === 1 ? units.unit[row] : null;
    sum.add({ signed: 0, systematic, deviation }, norm, unit);
  }
  return { sum, total, sizes, longest };
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
    const threshold =
      ofQueries.sum.tolerance(deviations, 0) +
      ofKeys.sum.tolerance(
        deviations,
        dk.means.pairing?.[kvHead] ?? ofKeys.longest * dk.means.norm[kvHead],
      ) +
      ownError * sizes;
    const difference = ofQueries.total - ofKeys.total;
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
