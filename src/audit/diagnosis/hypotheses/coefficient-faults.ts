import type { HypothesisContext, HypothesisFamily, SampleRow } from '../hypothesis.js';
import { predictWeighted } from '../prediction.js';

/** Powers of the fraction whose coefficients an exponential's polynomial has beyond the constant 1. */
const powers = [1, 2, 3] as const;

/** Largest relative change of the exponential for which the fit by its derivative holds. */
const largestChange = 0.05;

/** w·x^power / 2^x of every visible key, x the fraction of its exponent: the derivative of w by c_power. */
function sensitivity({ reader }: HypothesisContext, row: SampleRow, power: number): Float64Array {
  const scores = reader.scores(row.row);
  const maximum = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  return scores.map((s) => {
    if (s === -Infinity) return 0;
    const x = (s - maximum) * Math.LOG2E;
    const fraction = x - Math.floor(x);
    return (Math.exp(s - row.correct.lse) * fraction ** power) / 2 ** fraction;
  });
}

/** Σ d_j (v_j − O): what the weights' change d makes of the output. */
function effect({ reader }: HypothesisContext, row: SampleRow, change: Float64Array): Float64Array {
  const { vDim } = row;
  const values = reader.values(row.kv);
  const out = new Float64Array(vDim);
  change.forEach((d, j) => {
    if (d !== 0)
      for (let c = 0; c < vDim; c++) out[c]! += d * (values[j * vDim + c]! - row.correct.out[c]!);
  });
  return out;
}

/** About what the LSE of a correct kernel with a cubic exponential is off by. */
const lseNoise = 2 ** -13.4;

/** The change of one coefficient that explains O and the LSE best, by least squares. */
function fitChange(context: HypothesisContext, power: number): number {
  let cross = 0;
  let squares = 0;
  for (const row of context.sample.filter((row) => row.damaged)) {
    const change = sensitivity(context, row, power);
    effect(context, row, change).forEach((d, c) => {
      cross += (d * (row.observed[c]! - row.correct.out[c]!)) / row.correct.noise;
      squares += d ** 2 / row.correct.noise;
    });
    const ofLse = row.observedLse === null ? NaN : row.observedLse - row.correct.lse;
    if (!Number.isFinite(ofLse)) continue;
    const total = change.reduce((a, b) => a + b, 0);
    cross += (total * ofLse) / lseNoise ** 2;
    squares += (total / lseNoise) ** 2;
  }
  return cross / squares;
}

/**
 * A wrong coefficient in the polynomial of the exponential, its change fitted. Which coefficient is
 * left open: the powers of a fraction are nearly proportional, and the maximum that the fraction is
 * counted from is the kernel's own.
 */
export const coefficientHypotheses: HypothesisFamily = function* (context) {
  const { reader } = context;
  for (const power of powers) {
    const error = fitChange(context, power);
    if (!(Math.abs(error) < largestChange) || error === 0) continue;
    yield {
      id: 'exp2-coefficient',
      technique: 'exp2-polynomial',
      statement:
        'the exponential is off by a smooth function of its fraction, as by a wrong coefficient of its polynomial',
      fitted: true,
      predict: (row) => {
        const change = sensitivity(context, row, power);
        const scores = reader.scores(row.row);
        let total = 1;
        for (const d of change) total += error * d;
        const weights = scores.map((s, j) =>
          s === -Infinity ? 0 : (Math.exp(s - row.correct.lse) + error * change[j]!) / total,
        );
        const lse = row.correct.lse + Math.log(total);
        return predictWeighted(row, { weights, values: reader.values(row.kv), lse });
      },
    };
  }
};
