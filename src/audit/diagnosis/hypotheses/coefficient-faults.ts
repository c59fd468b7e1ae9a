import {
  type Hypothesis,
  type HypothesisContext,
  type HypothesisFamily,
  rowsToFit,
  type SampleRow,
} from '../hypothesis.js';
import { predictWeighted, type RowPrediction } from '../prediction.js';
import { runOnlineSoftmax, type BlockOrder } from './online-softmax-faults.js';

/** Powers of the fraction whose coefficients an exponential's polynomial has beyond the constant 1. */
const powers = [1, 2, 3] as const;
/** Largest change of a coefficient that is looked for, and the one that derivatives are taken over. */
const largestChange = 0.05;
const step = 2 ** -10;
/** Rows that the change is fitted to, and how often. */
const fittedRows = 32;
const rounds = 2;

const blockSizes = [64, 128, 32, 256] as const;
const orders: readonly BlockOrder[] = ['last to first', 'first to last'];

/** Blocks of keys whose running maximum the fraction is counted from: their size and order. */
interface Blocks {
  readonly block: number;
  readonly order: BlockOrder;
}

/** A row whose exponential has `change` added to the coefficient of `power`. */
function changed(
  { reader }: HypothesisContext,
  row: SampleRow,
  blocks: Blocks,
  power: number,
  change: number,
): RowPrediction {
  const exponential = (fraction: number) => 1 + (change * fraction ** power) / 2 ** fraction;
  const law = { ...blocks, exponential };
  const online = runOnlineSoftmax(reader.scores(row.row), reader.valuesOf(row.row, row.kv), law);
  return predictWeighted(row, online);
}

/** Rows that a coefficient must explain some of, where rows show the error by themselves, to be fitted. */
const screenedRows = 4;
const leastScreened = 0.25;

/**
 * The part of the error of O and LSE of some rows that a change of one coefficient explains to first order,
 * in units of the rounding.
 */
function explainedPart(
  context: HypothesisContext,
  rows: readonly SampleRow[],
  blocks: Blocks,
  power: number,
): number {
  let [cross, squares, all] = [0, 0, 0];
  for (const row of rows) {
    const { observed, observedLse, correct, lseNoise } = row;
    const beside = changed(context, row, blocks, power, step);
    const trust = row.vDim / correct.noise;
    correct.out.forEach((x, c) => {
      const d = (beside.out[c] - x) / step;
      const error = observed[c] - x;
      cross += trust * d * error;
      squares += trust * d ** 2;
      all += trust * error ** 2;
    });
    if (observedLse === null || !Number.isFinite(observedLse)) continue;
    const d = (beside.lse - correct.lse) / step / lseNoise;
    const error = (observedLse - correct.lse) / lseNoise;
    cross += d * error;
    squares += d ** 2;
    all += error ** 2;
  }
  return cross ** 2 / squares / all;
}

/** The change of one coefficient that explains O and the LSE best, by least squares. */
function fitChange(
  context: HypothesisContext,
  rows: readonly SampleRow[],
  blocks: Blocks,
  power: number,
): number {
  let change = 0;
  for (let round = 0; round < rounds; round++) {
    let cross = 0;
    let squares = 0;
    for (const row of rows) {
      const { observed, observedLse, correct, lseNoise } = row;
      const at = change === 0 ? correct : changed(context, row, blocks, power, change);
      const beside = changed(context, row, blocks, power, change + step);
      const trust = row.vDim / correct.noise;
      at.out.forEach((x, c) => {
        const d = (beside.out[c] - x) / step;
        cross += trust * d * (observed[c] - x);
        squares += trust * d ** 2;
      });
      if (observedLse === null || !Number.isFinite(observedLse)) continue;
      const d = (beside.lse - at.lse) / step / lseNoise;
      cross += (d * (observedLse - at.lse)) / lseNoise;
      squares += d ** 2;
    }
    change += cross / squares;
    if (!(Math.abs(change) < largestChange)) return NaN;
  }
  return change;
}

/**
 * A wrong coefficient in the polynomial of the exponential, its change fitted. Which coefficient is
 * left open: the powers of a fraction are nearly proportional.
 */
export const coefficientHypotheses: HypothesisFamily = function* (context) {
  const { keys } = context.shape;
  const rows = context.sample
    .filter((row) => row.damaged)
    .slice(0, rowsToFit(context.shape, fittedRows));
  const sizes = [...new Set(blockSizes.map((size) => Math.min(size, keys)))];
  for (const block of sizes)
    for (const order of block < keys ? orders : orders.slice(0, 1))
      for (const power of powers) {
        const blocks = { block, order };
        const explained = () => explainedPart(context, rows.slice(0, screenedRows), blocks, power);
        if (!context.pooled && !(explained() >= leastScreened)) continue;
        const change = fitChange(context, rows, blocks, power);
        if (Number.isNaN(change) || change === 0) continue;
        const hypothesis: Hypothesis = {
          id: 'exp2-coefficient',
          technique: 'exp2-polynomial',
          statement:
            'the exponential is off by a smooth function of its fraction, as by a wrong coefficient of its polynomial',
          adjusted: true,
          predict: (row) => changed(context, row, blocks, power, change),
        };
        yield hypothesis;
      }
};
