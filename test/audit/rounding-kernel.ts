import type { KernelOutputs } from '../../src/audit/index.js';
import { formats, round, type FormatName } from '../../src/formats/index.js';
import { problemShape, visibleKeys, type Problem } from '../../src/problem.js';
import { decode, encode } from './damage.js';

/** The liberties a correct kernel takes. */
export interface Liberties {
  readonly outputFormat: FormatName;
  /** The max that P is scaled by lags behind the true one by this much, in log2 units. */
  readonly lag: (row: number) => number;
  /** Keys per tile: the running max is that of the tiles seen so far when each is rounded. */
  readonly tile: number;
}

/**
 * A correct flash-style kernel: fp32 sums (fp64 for fp64 inputs), P rounded to V's format after scaling by a running and
 * lagging max, row sum of the unrounded P, O rounded once. Written apart from the oracle.
 */
export function roundingKernel(problem: Problem, liberties: Liberties): KernelOutputs {
  const shape = problemShape(problem);
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const [q, k, v] = [decode(problem.q), decode(problem.k), decode(problem.v)];
  const working = problem.q.format === 'fp64' ? (x: number) => x : Math.fround;
  const weightFormat = formats[problem.v.format];
  const out = new Float64Array(batch * heads * queries * vDim);
  const lse = new Float64Array(batch * heads * queries);
  for (let row = 0; row < lse.length; row++) {
    const head = Math.floor(row / queries);
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    const { begin, end } = visibleKeys(problem, shape, row % queries);
    let reference = -Infinity;
    let total = 0;
    const sums = new Float64Array(vDim);
    for (let first = begin; first < end; first += liberties.tile) {
      const scores: number[] = [];
      for (let j = first; j < Math.min(end, first + liberties.tile); j++) {
        let dot = 0;
        for (let t = 0; t < qkDim; t++)
          dot = working(dot + q[row * qkDim + t]! * k[(kv * keys + j) * qkDim + t]!);
        const scaled = dot * problem.scale;
        scores.push(
          problem.softcap === null ? scaled : problem.softcap * Math.tanh(scaled / problem.softcap),
        );
      }
      const largest = Math.max(...scores) - liberties.lag(row) * Math.LN2;
      if (largest > reference) {
        const factor = reference === -Infinity ? 0 : Math.exp(reference - largest);
        total *= factor;
        for (let c = 0; c < vDim; c++) sums[c]! *= factor;
        reference = largest;
      }
      scores.forEach((score, i) => {
        const p = working(Math.exp(score - reference));
        const rounded = round(weightFormat, p);
        total = working(total + p);
        for (let c = 0; c < vDim; c++)
          sums[c] = working(sums[c]! + rounded * v[(kv * keys + first + i) * vDim + c]!);
      });
    }
    if (end > begin) for (let c = 0; c < vDim; c++) out[row * vDim + c] = working(sums[c]! / total);
    lse[row] = end > begin ? reference + Math.log(total) : -Infinity;
  }
  return {
    out: encode(out, liberties.outputFormat, [batch, heads, queries, vDim]),
    lse: encode(lse, problem.q.format === 'fp64' ? 'fp64' : 'fp32', [batch, heads, queries]),
  };
}
