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

/** Keys of a stretch that has one factor of `RelativeWeights`. */
export const cellKeys = 16;

/** Weights in multiples of the correct ones. */
export interface RelativeWeights {
  /** The correct weights of all keys: their shares in the row sum. */
  readonly shares: Float64Array;
  /** A factor for each stretch of 16 keys; null for one factor of all keys but those of a range. */
  readonly cells: Float64Array | null;
  /** The keys whose weights are not `factor` times their shares, and these weights; null for none. */
  readonly range: {
    readonly begin: number;
    readonly end: number;
    readonly weights: Float64Array;
    readonly factor: number;
  } | null;
}

/** A row of weights already divided by the row sum, as a faulty kernel applies them to V. */
export interface WeightedRow {
  /** Instead of `weights`, which are none then, for rows of so many keys that V is not held. */
  readonly relative?: RelativeWeights;
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
  /** Sums over the values of a row with so many keys that V is not held; default: over the values that come with the weights. */
  readonly sumsOf?: (row: WeightedRow) => WeightedSums;
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

/** Sums over the values of a row, with weights. */
export interface WeightedSums {
  /** Σ w v and Σ |w v| by column. */
  readonly out: Float64Array;
  readonly magnitude: Float64Array;
  /** Σ w²‖v‖². */
  squares: number;
}

/** Sums over no keys. */
export function emptySums(vDim: number): WeightedSums {
  return { out: new Float64Array(vDim), magnitude: new Float64Array(vDim), squares: 0 };
}

/** Adds keys to sums, in their order; keys of weight 0 have no part in them, whatever their values. */
export function addWeighed(
  sums: WeightedSums,
  weights: Float64Array,
  values: Float64Array,
  vDim: number,
): void {
  const { out, magnitude } = sums;
  let { squares } = sums;
  const addOne = (j: number) => {
    const w = weights[j];
    if (w === 0) return;
    let norm = 0;
    for (let c = 0, at = j * vDim; c < vDim; c++, at++) {
      const v = values[at];
      const product = w * v;
      out[c] += product;
      magnitude[c] += Math.abs(product);
      norm += v * v;
    }
    squares += w * w * norm;
  };
  /** Four keys at once: their norms do not wait for each other, and the sums stay in registers. */
  const addFour = (j: number) => {
    const [w0, w1, w2, w3] = [weights[j], weights[j + 1], weights[j + 2], weights[j + 3]];
    let [n0, n1, n2, n3] = [0, 0, 0, 0];
    for (let c = 0, at = j * vDim; c < vDim; c++, at++) {
      const v0 = values[at];
      const v1 = values[at + vDim];
      const v2 = values[at + 2 * vDim];
      const v3 = values[at + 3 * vDim];
      const p0 = w0 * v0;
      const p1 = w1 * v1;
      const p2 = w2 * v2;
      const p3 = w3 * v3;
      out[c] = out[c] + p0 + p1 + p2 + p3;
      magnitude[c] = magnitude[c] + Math.abs(p0) + Math.abs(p1) + Math.abs(p2) + Math.abs(p3);
      n0 += v0 * v0;
      n1 += v1 * v1;
      n2 += v2 * v2;
      n3 += v3 * v3;
    }
    squares = squares + w0 * w0 * n0 + w1 * w1 * n1 + w2 * w2 * n2 + w3 * w3 * n3;
  };
  let j = 0;
  while (j < weights.length) {
    const isFour =
      j + 4 <= weights.length &&
      weights[j] !== 0 &&
      weights[j + 1] !== 0 &&
      weights[j + 2] !== 0 &&
      weights[j + 3] !== 0;
    if (isFour) addFour(j);
    else addOne(j);
    j += isFour ? 4 : 1;
  }
  sums.squares = squares;
}

/** Sums over the values that come with weights. */
function weighValues({ weights, values }: WeightedRow, vDim: number): WeightedSums {
  const sums = emptySums(vDim);
  addWeighed(sums, weights, values, vDim);
  return sums;
}

/** The output of weights applied to values, with the limits of its rounding. */
export function predictWeighted(place: PredictionPlace, row: WeightedRow): RowPrediction {
  const { reported } = place;
  const { lse, growth = 1 } = row;
  const { out, magnitude, squares } = place.sumsOf?.(row) ?? weighValues(row, place.vDim);
  const bound = place.bound.keys === 0 ? place.elsewhere : place.bound;
  const grown =
    growth <= 1
      ? bound
      : {
          ...bound,
          weight: Math.expm1(Math.min(growth * Math.log1p(bound.weight), 700)),
          typicalWeight: growth * bound.typicalWeight,
        };
  return finish({ ...place, bound: grown }, out, magnitude, squares, reported(lse));
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
  if (scores.length > manyKeys) return { ...longSoftmax(scores), values, growth };
  const lse = logSumExp(scores);
  const weights = scores.map((s) => (s === -Infinity ? 0 : Math.exp(s - lse)));
  return { weights, values, lse, growth };
}

/** Scores from so many on are not raised to powers twice. */
const manyKeys = 2 ** 18;

/** The softmax by one exponential a key. */
function longSoftmax(scores: Float64Array): Pick<WeightedRow, 'weights' | 'lse'> {
  const weights = new Float64Array(scores.length);
  let maximum = -Infinity;
  for (let j = 0; j < scores.length; j++) if (scores[j] > maximum) maximum = scores[j];
  if (maximum === -Infinity) return { weights, lse: -Infinity };
  let sum = 0;
  for (let j = 0; j < scores.length; j++) sum += weights[j] = Math.exp(scores[j] - maximum);
  for (let j = 0; j < scores.length; j++) weights[j] /= sum;
  return { weights, lse: maximum + Math.log(sum) };
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
