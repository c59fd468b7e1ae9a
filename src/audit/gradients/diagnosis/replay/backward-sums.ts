import {
  byGradient,
  type ByGradient,
  type GradientQuantityName,
} from '../../gradient-quantities.js';
import type { FailedGradients } from '../failed-gradients.js';
import { backwardRows, type BackwardChange, type BackwardOperands } from './backward-row.js';

/** A gradient, and the sizes that its elements are sums of. */
export interface Sums {
  readonly values: Float64Array;
  readonly sizes: Float64Array;
}

/** Adds a factor times a row of numbers to a row, and `size` times its sizes to another. */
function addRow(
  { values, sizes }: Sums,
  at: number,
  [factor, size]: readonly [number, number],
  [from, first, columns]: readonly [Float64Array, number, number],
): void {
  for (let c = 0; c < columns; c++) {
    const x = from[first + c];
    values[at + c] += factor * x;
    sizes[at + c] += size * Math.abs(x);
  }
}

/** The gradients of a backward pass, and how the share of a head of K and of its query heads is added to them. */
export interface BackwardSums {
  readonly gradients: ByGradient<Sums>;
  readonly addGroup: (kvHead: number) => void;
}

/**
 * The gradients of a backward pass with a fault, of zeros, to be filled in group by group of heads.
 * @param names which of them are summed; the others stay 0
 */
export function backwardSums(
  { problem, measured }: Pick<FailedGradients, 'problem' | 'measured'>,
  operands: BackwardOperands,
  change: BackwardChange,
  names: readonly GradientQuantityName[],
): BackwardSums {
  const { groupSize, queries, qkDim, vDim, keys } = measured.shape;
  const { q, k, dout } = { ...operands, ...change.operands };
  const has = byGradient(({ name }) => names.includes(name));
  const gradients: ByGradient<Sums> = byGradient(({ name }) => {
    const numbers = () => new Float64Array(measured.gradients[name].exact.values.length);
    return { values: numbers(), sizes: numbers() };
  });
  const { dq, dk, dv } = gradients;
  const rowOf = backwardRows(problem, measured, operands, change);
  const scale = change.law?.scale ?? problem.scale;
  const addGroup = (kvHead: number) => {
    for (let head = kvHead * groupSize; head < (kvHead + 1) * groupSize; head++)
      for (let query = 0; query < queries; query++) {
        const { ranges, weights, scores, sizes } = rowOf(head, query);
        const row = head * queries + query;
        for (const { begin, end } of ranges)
          for (let key = begin; key < end; key++) {
            const at = kvHead * keys + key;
            const ds = [scale * scores[key], Math.abs(scale) * sizes[key]] as const;
            const p = [weights[key], weights[key]] as const;
            if (has.dq) addRow(dq, row * qkDim, ds, [k, at * qkDim, qkDim]);
            if (has.dk) addRow(dk, at * qkDim, ds, [q, row * qkDim, qkDim]);
            if (has.dv) addRow(dv, at * vDim, p, [dout, row * vDim, vDim]);
          }
      }
  };
  return { gradients, addGroup };
}
