import { attentionGradients, attentionOracle, type Gradient } from '../../../../oracles/index.js';
import { decodeTensor, type Tensor } from '../../../formats/index.js';
import { problemShape, type Problem } from '../../../problem/index.js';
import type { ByGradient } from '../gradient-quantities.js';

/** dO with every row multiplied by a number. */
export function withRowFactors(dout: Tensor, factors: ArrayLike<number>): Tensor {
  const columns = dout.shape.at(-1) ?? 1;
  const data = decodeTensor(dout).map((x, i) => {
    const factor = factors[Math.floor(i / columns)];
    return factor === 0 ? 0 : x * factor;
  });
  return { format: 'fp64', shape: dout.shape, data };
}

/**
 * The exact gradients with other dO, empty where nobody wants them. They are linear in each row of dO, so that a factor of a row's P is one of its dO.
 */
export function gradientsOf(
  problem: Problem,
  dout: Tensor,
  wanted: readonly ('dq' | 'dk' | 'dv')[],
): ByGradient<Float64Array> {
  const { dq, dk, dv } = attentionGradients(problem, dout, { wanted });
  const of = (gradient: Gradient | null) => gradient?.values ?? new Float64Array();
  return { dq: of(dq), dk: of(dk), dv: of(dv) };
}

/** A problem whose values are others, without dropout. */
function withValues(problem: Problem, v: Tensor): Problem {
  const kept = Object.entries(problem).filter(([name]) => name !== 'dropout' && name !== 'stored');
  return { ...(Object.fromEntries(kept) as unknown as Problem), v };
}

/** Σ P k of every row, and the natural logarithm of its row sum without a sink: [batch, heads, queries, qkDim]. */
export function meanKeys(problem: Problem) {
  const { batch, kvHeads, keys, qkDim } = problemShape(problem);
  const data = decodeTensor(problem.k);
  const v: Tensor = { format: 'fp64', shape: [batch, kvHeads, keys, qkDim], data };
  const { quantities, denominator } = attentionOracle(withValues(problem, v));
  return { means: quantities.out.values, denominator };
}

/** Pᵀ X of every head of K, for X of [batch, heads, queries, qkDim]. */
export function transposedProduct(problem: Problem, rows: Float64Array): Float64Array {
  const { batch, heads, kvHeads, queries, keys, qkDim } = problemShape(problem);
  const v: Tensor = {
    format: 'fp64',
    shape: [batch, kvHeads, keys, qkDim],
    data: new Float64Array(batch * kvHeads * keys * qkDim),
  };
  const dout: Tensor = { format: 'fp64', shape: [batch, heads, queries, qkDim], data: rows };
  return gradientsOf(withValues(problem, v), dout, ['dv']).dv;
}
