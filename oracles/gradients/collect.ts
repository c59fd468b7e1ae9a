import { problemShape, type Problem, type Tensor } from '../../src/problem/index.js';
import { gradientOracle, type GradientOracleOptions, type SharedGradients } from './gradients.js';
import type { Gradient } from './sums.js';

/** The gradients of a whole problem; null for those not wanted or not present. */
export interface AttentionGradients extends SharedGradients {
  /** [batch, heads, queries, qkDim] */
  readonly dq: Gradient | null;
  /** [batch, kv heads, keys, qkDim] and [batch, kv heads, keys, vDim] */
  readonly dk: Gradient | null;
  readonly dv: Gradient | null;
  /** [batch, heads, queries]: D = dO·O. */
  readonly mean: Gradient;
  /** [batch, heads, queries]: index into `levels`. */
  readonly level: Uint8Array;
}

/** Gradients of that many elements, to be written part by part. */
function emptyGradient(length: number): Gradient {
  const numbers = () => new Float64Array(length);
  return { values: numbers(), radius: numbers(), magnitude: numbers() };
}

function place(whole: Gradient, part: Gradient | null, at: number): void {
  if (part === null) return;
  for (const name of ['values', 'radius', 'magnitude'] as const) whole[name].set(part[name], at);
}

/**
 * All gradients of a problem at once: `gradientOracle`, collected.
 * @throws RequestError as `gradientOracle`
 */
export function attentionGradients(
  problem: Problem,
  dout: Tensor,
  options: Omit<GradientOracleOptions, 'keys'> = {},
): AttentionGradients {
  const groups = gradientOracle(problem, dout, options);
  const { batch, heads, kvHeads, queries, keys, qkDim, vDim } = problemShape(problem);
  const rows = batch * heads * queries;
  const dq = emptyGradient(rows * qkDim);
  const dk = emptyGradient(batch * kvHeads * keys * qkDim);
  const dv = emptyGradient(batch * kvHeads * keys * vDim);
  const mean = emptyGradient(rows);
  const level = new Uint8Array(rows);
  const has = { dq: false, dk: false, dv: false };
  for (;;) {
    const next = groups.next();
    if (next.done === true)
      return {
        ...next.value,
        dq: has.dq ? dq : null,
        dk: has.dk ? dk : null,
        dv: has.dv ? dv : null,
        mean,
        level,
      };
    const { kvHead, heads: ofHeads, dk: ofKeys, dv: ofValues } = next.value;
    for (const head of ofHeads) {
      place(dq, head.dq, head.head * queries * qkDim);
      place(mean, head.mean, head.head * queries);
      level.set(head.level, head.head * queries);
      has.dq = head.dq !== null;
    }
    place(dk, ofKeys, kvHead * keys * qkDim);
    place(dv, ofValues, kvHead * keys * vDim);
    has.dk = ofKeys !== null;
    has.dv = ofValues !== null;
  }
}
