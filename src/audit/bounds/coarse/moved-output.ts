import type { AttentionReference } from '../../../../oracles/index.js';
import { keptWeights, type Problem } from '../../../problem/index.js';
import type { MovedWeights } from './moved-weights.js';
import { up, type CoarseRow } from './uncertain-scores.js';

/** The effect of moved weights on O, each [vDim]. */
export interface MovedOutput {
  /** The most by which it may move. */
  readonly output: Float64Array;
  /** The largest |v| that has weight. */
  readonly magnitude: Float64Array;
}

/** Makes a function that tells how far O may be moved by weights that move. */
export function createMovedOutput(problem: Problem, reference: AttentionReference) {
  const { out: exactOut } = reference.quantities;
  const { vDim } = reference.shape;
  const kept = keptWeights(problem, reference.shape);
  const isKept = new Uint8Array(1).fill(1);

  return function moveOutput(
    { visible, row, query, operands }: CoarseRow,
    weights: MovedWeights,
  ): MovedOutput {
    const { moved, least, contends, rest } = weights;
    const first = new Float64Array(vDim);
    const reach = new Float64Array(vDim);
    const others = new Float64Array(vDim);
    const magnitude = new Float64Array(vDim);
    for (let j = 0; j < moved.length; j++) {
      if (contends[j] === 0 && rest[j] === 0) continue;
      const isSink = j === visible.length;
      const { first: firstKey, values } = operands.value.with(isSink ? visible[0] : visible[j]);
      kept?.fill(operands.head, query, isSink ? visible[0] : visible[j], isKept);
      const factor = isSink || isKept[0] === 0 ? 0 : 1 / (kept?.share ?? 1);
      let at = isSink ? 0 : (visible[j] - firstKey) * vDim;
      for (let c = 0; c < vDim; c++, at++) {
        const v = values[at] * factor;
        const distance = Math.abs(v - exactOut.values[row * vDim + c]);
        if (moved[j] > 0 && distance > 0) first[c] += moved[j] * distance;
        if (contends[j] === 1) {
          reach[c] = Math.max(reach[c], distance);
          magnitude[c] = Math.max(magnitude[c], Math.abs(v));
        } else others[c] += rest[j] * (distance + Math.abs(v));
      }
    }
    return {
      output: Float64Array.from(first, (x, c) =>
        Math.min(least > 0 ? (x / least) * up : x > 0 ? Infinity : 0, reach[c] + others[c] * up),
      ),
      magnitude: magnitude.map((x, c) => x + others[c] * up),
    };
  };
}
