import { decodeTensor } from '../../../../formats/index.js';
import { meanKeys, transposedProduct } from '../changed-gradients.js';
import type { FailedGradients } from '../failed-gradients.js';
import { backwardSums } from '../replay/backward-sums.js';
import type { Replayed } from '../replay/replay.js';

/** The share of D in gradients, for a D that is 1 too small: in dQ row by row, and in dK for a number for each row. */
export interface MeanShares {
  /** [batch, heads, queries, qkDim], without the scale. */
  readonly ofQueries: Float64Array;
  readonly ofKeys: (off: Float64Array) => Float64Array;
}

/** Σ P k and Σ P off·q, by the exact attention of other values. */
function plainShares({ problem, measured }: FailedGradients): MeanShares {
  const { qkDim } = measured.shape;
  const q = decodeTensor(problem.q);
  const moved = (off: Float64Array) =>
    q.map((x, i) => {
      const factor = off[Math.floor(i / qkDim)];
      return factor === 0 ? 0 : problem.scale * factor * x;
    });
  return {
    ofQueries: meanKeys(problem).means,
    ofKeys: (off) => transposedProduct(problem, moved(off)),
  };
}

/** The same with the softcap's derivative, from a backward pass without dO whose D is −1, or minus its error. */
function cappedShares({ failed, operands }: Replayed): MeanShares {
  const { measured, problem } = failed;
  const { batch, kvHeads } = measured.shape;
  const silent = { dout: new Float64Array(operands.dout.length) };
  const summed = (delta: Float64Array, name: 'dq' | 'dk') => {
    const change = { change: { delta, operands: silent } };
    const { gradients, addGroup } = backwardSums(failed, operands, change, [name]);
    for (let kvHead = 0; kvHead < batch * kvHeads; kvHead++) addGroup(kvHead);
    return gradients[name].values;
  };
  const ofQueries = summed(new Float64Array(measured.mean.values.length).fill(-1), 'dq');
  return {
    ofQueries: ofQueries.map((x) => x / problem.scale),
    ofKeys: (off) =>
      summed(
        off.map((x) => -x),
        'dk',
      ),
  };
}

/**
 * The share of the D of each row in dQ and dK: by the oracle; under a softcap, whose derivative is in it, by backward passes.
 * @param passes the number of these that may be needed; null where they would take too long
 */
export function meanShares(of: Replayed, passes: number): MeanShares | null {
  if (of.failed.problem.softcap === null) return plainShares(of.failed);
  return of.budget.takes(passes) ? cappedShares(of) : null;
}
