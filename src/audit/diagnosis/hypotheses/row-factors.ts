import type { HypothesisFamily, SampleRow } from '../hypothesis.js';
import { scalePrediction } from '../prediction.js';

/** Fewest rows that show factors of their own. */
const fewestRows = 8;

/** "−1.2 % to 0.8 %". */
function rangeOf(factors: readonly number[]): string {
  const percent = (x: number) => `${Number(((x - 1) * 100).toPrecision(2))} %`;
  return `${percent(Math.min(...factors))} to ${percent(Math.max(...factors))}`;
}

/** The factor of a row's output that its LSE gives away: what the row sum is too small by. */
function factorByLse({ observedLse, correct }: SampleRow): number {
  return Math.exp(correct.lse - observedLse!);
}

/**
 * A row sum that is off by a factor of its own on every row: the LSE gives the factor, and the output bears it out.
 * Said only when nothing that would make such factors is known.
 */
export const rowFactorHypotheses: HypothesisFamily = function* ({ sample, input }) {
  if (input.outputs.lse === null) return;
  const damaged = sample.filter((row) => row.damaged);
  if (damaged.length < fewestRows) return;
  const factors = damaged.map(factorByLse);
  if (!factors.every((x) => Number.isFinite(x) && x > 0)) return;
  yield {
    id: 'row-sum-by-row',
    technique: 'row-sum',
    statement: `the row sum is wrong by a factor that differs from row to row, and the LSE with it: the output is off by ${rangeOf(factors)}`,
    fitted: true,
    predict: (row) => {
      const factor = factorByLse(row);
      if (!Number.isFinite(factor)) return null;
      return scalePrediction(row, row.correct, factor, row.observedLse!);
    },
  };
};
