import type { FailedGradients } from '../failed-gradients.js';
import { isWithinBounds, type PredictedGradients, type Prediction } from '../prediction.js';
import type { BackwardChange, BackwardOperands } from './backward-row.js';
import { backwardSums, type Sums } from './backward-sums.js';
import type { Budget } from './budget.js';

/** Where the rows of a head of K and V, and of its query heads, begin and end in each gradient. */
function partsOfGroup({ measured: { shape } }: FailedGradients, kvHead: number) {
  const { groupSize, queries, keys, qkDim, vDim } = shape;
  const part = (size: number) => [kvHead * size, (kvHead + 1) * size] as const;
  return {
    dq: part(groupSize * queries * qkDim),
    dk: part(keys * qkDim),
    dv: part(keys * vDim),
  };
}

/** The heads of K and V, those first whose gradients err most beside their bounds. */
function groupsByError(failed: FailedGradients): number[] {
  const { measured, given } = failed;
  const { batch, kvHeads } = measured.shape;
  const worst = Array.from({ length: batch * kvHeads }, (_, kvHead) => {
    const parts = partsOfGroup(failed, kvHead);
    let most = 0;
    for (const { quantity, values } of given) {
      const { exact, bound } = measured.gradients[quantity.name];
      const [first, end] = parts[quantity.name];
      for (let i = first; i < end; i++) {
        const error = Math.abs(values[i] - exact.values[i] - bound.shift[i]);
        if (error > 0) most = Math.max(most, error / bound.total[i]);
      }
    }
    return most;
  });
  return worst.map((_, kvHead) => kvHead).sort((a, b) => worst[b] - worst[a]);
}

/** What a backward pass is replayed of. */
export interface Replayed {
  readonly failed: FailedGradients;
  readonly operands: BackwardOperands;
  readonly budget: Budget;
}

/** The gradients of a backward pass, and the sizes that its elements are sums of. */
export type Replay = Required<Pick<Prediction, 'predicted' | 'sizes'>>;

/**
 * The gradients of a backward pass with a fault, group by group of heads; null as soon as those of a group are not what was
 * given, and where the budget is spent. Memory is that of the gradients and some rows of keys.
 */
export function replay(
  { failed, operands, budget }: Replayed,
  change: BackwardChange,
): Replay | null {
  const { measured, given } = failed;
  const { batch, kvHeads } = measured.shape;
  const names = given.map(({ quantity }) => quantity.name);
  const { gradients, addGroup } = backwardSums(failed, operands, change, names);
  for (const kvHead of groupsByError(failed)) {
    if (!budget.takes(1 / (batch * kvHeads))) return null;
    addGroup(kvHead);
    const parts = partsOfGroup(failed, kvHead);
    const isGiven = given.every((one) => {
      const { name } = one.quantity;
      const { values, sizes } = gradients[name];
      return isWithinBounds(failed, one, { predicted: values, sizes }, parts[name]);
    });
    if (!isGiven) return null;
  }
  const of = (part: keyof Sums) =>
    Object.fromEntries(
      given.map(({ quantity: { name } }) => [name, gradients[name][part]] as const),
    ) as PredictedGradients;
  return { predicted: of('values'), sizes: of('sizes') };
}
