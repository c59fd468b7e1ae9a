import type { FormatName } from '../../formats/index.js';
import { internalBound, outputRounding, type RowBound } from '../bounds/index.js';
import { expectedError } from './row-damage.js';
import type { DiagnosisInput } from './diagnosis.js';

/** The results of a kernel with a certain fault for one row, up to rounding. */
export interface RowPrediction {
  readonly out: Float64Array;
  /** Expected Σ of squared rounding errors over the columns. */
  readonly noise: number;
  /** Per column: the most by which an otherwise correct kernel may differ from `out`. */
  readonly limit: Float64Array;
  /** Natural logarithm; NaN where the fault leaves it open. */
  readonly lse: number;
}

/** A row of weights already divided by the row sum, as a faulty kernel applies them to V. */
export interface WeightedRow {
  readonly weights: Float64Array;
  /** [keys × vDim]; weight j is applied to row j. */
  readonly values: Float64Array;
  /** The logarithm of the row sum, a sink included; natural units. */
  readonly lse: number;
  /** Factor by which the scores are larger than those of the problem, when more than one. */
  readonly growth?: number;
}

/** The context of a prediction: the row's bound and the output's format and columns. */
export interface PredictionPlace {
  readonly bound: RowBound;
  readonly outputFormat: FormatName;
  readonly vDim: number;
  /** The bound for a fault that shows keys to a row without any: that of a row that has some. */
  readonly elsewhere: RowBound;
  /** The LSE that a kernel gives for a logarithm of the row sum: without the sink where the problem asks for that. */
  readonly reported: (logarithm: number) => number;
}

function finish(
  { bound, outputFormat, vDim }: PredictionPlace,
  out: Float64Array,
  magnitude: Float64Array,
  squares: number,
  lse: number,
): RowPrediction {
  const limit = new Float64Array(vDim);
  for (let c = 0; c < vDim; c++) {
    // Σ w|v − O| is at most Σ w|v| + |O|.
    const spread = magnitude[c] + Math.abs(out[c]);
    const internal = internalBound(bound, out[c], magnitude[c], spread);
    limit[c] = internal + outputRounding(outputFormat, out[c], internal);
  }
  return { out, noise: expectedError(bound, squares, out, magnitude, outputFormat), limit, lse };
}

/** The output of weights applied to values, with the limits of its rounding. */
export function predictWeighted(place: PredictionPlace, row: WeightedRow): RowPrediction {
  const { vDim, reported } = place;
  const { weights, values, growth = 1 } = row;
  const out = new Float64Array(vDim);
  const magnitude = new Float64Array(vDim);
  let squares = 0;
  for (let j = 0; j < weights.length; j++) {
    const w = weights[j];
    if (w === 0) continue;
    let norm = 0;
    for (let c = 0; c < vDim; c++) {
      const v = values[j * vDim + c];
      out[c] += w * v;
      magnitude[c] += Math.abs(w * v);
      norm += v * v;
    }
    squares += w * w * norm;
  }
  const bound = place.bound.keys === 0 ? place.elsewhere : place.bound;
  const grown =
    growth <= 1
      ? bound
      : {
          ...bound,
          weight: Math.expm1(Math.min(growth * Math.log1p(bound.weight), 700)),
          typicalWeight: growth * bound.typicalWeight,
        };
  return finish({ ...place, bound: grown }, out, magnitude, squares, reported(row.lse));
}

/**
 * A prediction multiplied by `factor`. Roundings scale with it, except that of the output's own format, which
 * is judged anew.
 */
export function scalePrediction(
  place: PredictionPlace,
  prediction: RowPrediction,
  factor: number,
  lse: number,
): RowPrediction {
  const limit = prediction.limit.map((limit, c) => {
    const scaled = factor * prediction.out[c];
    return Math.abs(factor) * limit + outputRounding(place.outputFormat, scaled, 0);
  });
  const out = prediction.out.map((x) => factor * x);
  return { out, noise: Math.max(factor ** 2, 2 ** -10) * prediction.noise, limit, lse };
}

/** Natural logarithm of Σ exp(score); −∞ without keys. */
export function logSumExp(scores: Float64Array): number {
  let maximum = -Infinity;
  for (const s of scores) if (s > maximum) maximum = s;
  if (maximum === -Infinity) return -Infinity;
  let sum = 0;
  for (const s of scores) sum += Math.exp(s - maximum);
  return maximum + Math.log(sum);
}

/** Softmax of scores, −∞ for masked ones: zeros, with an LSE of −∞, when all are masked. */
export function softmaxRow(scores: Float64Array, values: Float64Array, growth = 1): WeightedRow {
  const lse = logSumExp(scores);
  const weights = scores.map((s) => (s === -Infinity ? 0 : Math.exp(s - lse)));
  return { weights, values, lse, growth };
}

/**
 * The result of a correct kernel for a row: the exact output and, per column, the most by which rounding can
 * move it (Σ w|v − O| taken for its upper bound Σ w|v| + |O|). A row without keys is not moved.
 */
export function correctRow(
  { reference, bound, outputs }: DiagnosisInput,
  row: number,
): Pick<RowPrediction, 'out' | 'limit'> {
  const { format: outputFormat } = outputs.out;
  const { vDim } = reference.shape;
  const rowBound = bound.row(row);
  const out = reference.quantities.out.values.slice(row * vDim, (row + 1) * vDim);
  const limit = out.map((exact, c) => {
    if (rowBound.keys === 0) return 0;
    const magnitude = reference.quantities.out.magnitude[row * vDim + c];
    const internal = internalBound(rowBound, exact, magnitude, magnitude + Math.abs(exact));
    return internal + outputRounding(outputFormat, exact, internal);
  });
  return { out, limit };
}
