import { drawRecurrence, poseRecurrence, type PosedRecurrence } from '../problems/index.js';
import type { ResolvedRecurrentPromises } from './promises.js';

/**
 * An ordinary problem that every kernel with such promises can compute, the same each time: without an initial state, packed
 * sequences, a normalisation and gradients.
 * @throws RequestError where the promises leave none
 */
export function ordinaryRecurrence(promises: ResolvedRecurrentPromises): PosedRecurrence {
  const plainly = { packed: false, initialState: [], normalisation: false, gradients: false };
  return poseRecurrence(drawRecurrence({ ...promises, ...plainly }, 'typical', 0));
}
