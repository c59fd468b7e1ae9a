import { broadcastStrides } from './broadcast.js';
import { rowPlaces } from './places.js';
import type { Problem, ProblemShape } from './problem.js';

/** The weights that dropout keeps, and their factor. */
export interface KeptWeights {
  /** The reciprocal of the factor 1/(1 − probability), an fp64 number that counts as exact: 1 − probability. */
  readonly share: number;
  /**
   * Writes 1 to element j of the target where the weight of key `firstKey` + j is kept, else 0.
   * @param head counted over [batch, heads]
   */
  readonly fill: (head: number, query: number, firstKey: number, target: Uint8Array) => void;
}

/** The weights that dropout keeps; null for a problem without. */
export function keptWeights(problem: Problem, shape: ProblemShape): KeptWeights | null {
  const { dropout } = problem;
  if (dropout === undefined) return null;
  const { kept, probability } = dropout;
  const strides = broadcastStrides(kept.shape);
  const placeOf = rowPlaces(problem, shape);
  return {
    share: 1 - probability,
    fill: (head, query, firstKey, target) => {
      const place = placeOf(head, query);
      const row =
        place.sequence * strides.batch + place.head * strides.head + place.query * strides.query;
      for (let j = 0; j < target.length; j++) {
        const key = firstKey + j - place.firstKey;
        const isOwn = key >= 0 && key < place.keys;
        target[j] = isOwn && kept.data[row + key * strides.key] !== 0 ? 1 : 0;
      }
    },
  };
}
