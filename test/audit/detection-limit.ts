import type { AttentionReference } from '../../oracles/index.js';
import { alarmDeviations } from '../../src/audit/index.js';
import { formats, ulp, type FormatName } from '../../src/formats/index.js';
import { visibleKeys, type Problem } from '../../src/problem/index.js';
import { decode } from './damage.js';

/** What a perfect test could see of one head. */
export interface DetectionLimit {
  /** Relative error of the whole head. */
  readonly scale: number;
  /** Absolute error of all its elements alike. */
  readonly bias: number;
  /** Root mean square error that the model of the noise expects on the head. */
  readonly rms: number;
}

/** Variance of rounding to nearest in `format` near x: uniform within half an ulp. */
function roundingVariance(format: FormatName, x: number): number {
  return x === 0 ? 0 : ulp(formats[format], Math.abs(x)) ** 2 / 12;
}

/**
 * The smallest errors of one head that any unbiased linear test could see with a rate of false alarms of
 * `falseAlarmRate`, when the kernel is `roundingKernel` without a lag. The noise of element (i, c), all
 * roundings uniform and independent, is
 *
 *   σ² = Σ_j w_j² ρ_j² v_jc² + Σ_j w_j² s_j² (v_jc − O_c)² + a² + ulp(O)²/12
 *
 * with ρ_j the relative standard deviation of the rounding of p_j = w_j / w_max to V's format (0 for
 * p = 1), s_j that of the score's sum in fp32, a that of the partial sums of P·V in fp32, from their very
 * partial sums. The weighted least squares estimates of a factor 1 + x and of an offset b have the standard
 * errors 1/√(Σ O²/σ²) and 1/√(Σ 1/σ²); the limit is `alarmDeviations(1, falseAlarmRate)` of them.
 */
export function detectionLimit(
  problem: Problem,
  reference: AttentionReference,
  outputFormat: FormatName,
  head: number,
  falseAlarmRate = 1e-9,
): DetectionLimit {
  const { shape } = reference;
  const { queries, keys, qkDim, vDim, heads, kvHeads, groupSize } = shape;
  const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
  const [q, k, v] = [decode(problem.q), decode(problem.k), decode(problem.v)];
  const weightFormat = problem.v.format;
  let slope = 0;
  let mean = 0;
  let squares = 0;
  for (let i = 0; i < queries; i++) {
    const row = head * queries + i;
    const { begin, end } = visibleKeys(problem, shape, i);
    const peak = Math.exp(reference.maximum[row] - reference.quantities.lse.values[row]);
    const variance = new Float64Array(vDim);
    const sum = new Float64Array(vDim);
    for (let j = begin; j < end; j++) {
      let dot = 0;
      let ofScore = 0;
      for (let t = 0; t < qkDim; t++) {
        dot += q[row * qkDim + t] * k[(kv * keys + j) * qkDim + t];
        ofScore += roundingVariance('fp32', dot);
      }
      ofScore *= problem.scale ** 2;
      const w = Math.exp(dot * problem.scale - reference.quantities.lse.values[row]);
      const p = w / peak;
      const ofWeight = p > 1 - 1e-12 ? 0 : roundingVariance(weightFormat, p) / p ** 2;
      for (let c = 0; c < vDim; c++) {
        const value = v[(kv * keys + j) * vDim + c];
        const scattered = value - reference.quantities.out.values[row * vDim + c];
        sum[c] += w * value;
        variance[c] +=
          w * w * (ofWeight * value ** 2 + ofScore * scattered ** 2) +
          roundingVariance('fp32', sum[c] / peak) * peak ** 2;
      }
    }
    for (let c = 0; c < vDim; c++) {
      const exact = reference.quantities.out.values[row * vDim + c];
      const total = variance[c] + roundingVariance(outputFormat, exact);
      slope += exact ** 2 / total;
      mean += 1 / total;
      squares += total;
    }
  }
  const deviations = alarmDeviations(1, falseAlarmRate);
  return {
    scale: deviations / Math.sqrt(slope),
    bias: deviations / Math.sqrt(mean),
    rms: Math.sqrt(squares / (queries * vDim)),
  };
}
