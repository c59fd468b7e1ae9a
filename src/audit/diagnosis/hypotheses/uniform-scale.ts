import type { HypothesisContext, HypothesisFamily, SampleRow } from '../hypothesis.js';
import { scalePrediction } from '../prediction.js';

/**
 * The common factor of some rows, less one: regression of the output on the exact one; with the LSE, where
 * that follows the factor.
 */
function relativeError(rows: readonly SampleRow[], lseFollows: boolean): number {
  let cross = 0;
  let squares = 0;
  for (const { observed, observedLse, correct, lseNoise } of rows) {
    // Rows weigh by the inverse of their rounding.
    const weight = observed.length / correct.noise;
    for (let c = 0; c < observed.length; c++) {
      cross += weight * (observed[c] - correct.out[c]) * correct.out[c];
      squares += weight * correct.out[c] ** 2;
    }
    const ofLse = lseFollows ? Math.expm1(correct.lse - observedLse!) : NaN;
    if (!Number.isFinite(ofLse)) continue;
    cross += ofLse / lseNoise ** 2;
    squares += 1 / lseNoise ** 2;
  }
  return squares === 0 ? 0 : cross / squares;
}

/** "0.92 %", "1.01 %". */
function inPercent(relative: number): string {
  const percent = Math.abs(relative) * 100;
  return `${Number(percent.toPrecision(percent < 1 ? 2 : 3))} %`;
}

const namedFactors: Readonly<Record<string, number>> = {
  'ln 2': Math.LN2,
  'log2 e': Math.LOG2E,
  '1/2': 0.5,
  '2': 2,
  '-1': -1,
};

function describe(relative: number): string {
  const named = Object.entries(namedFactors).find(
    ([, factor]) => Math.abs(1 + relative - factor) < 2e-3 * Math.abs(factor),
  );
  if (named !== undefined) return `the output is ${named[0]} times what it should be`;
  return `the output is ${inPercent(relative)} too ${relative > 0 ? 'large' : 'small'}`;
}

/** Causes that a common factor in O and, perhaps, in the sum behind the LSE points to. */
const readings = [
  {
    id: 'row-sum-scale',
    technique: 'row-sum',
    cause: 'the row sum is off by this factor, and the LSE with it',
    lse: (relative: number) => -Math.log(1 + relative),
  },
  {
    id: 'output-scale',
    technique: 'normalise',
    cause: 'final scale, or a row sum that the LSE does not see',
    lse: () => 0,
  },
] as const;

/** One wrong factor on all damaged rows, whatever their keys. */
export const uniformScaleHypotheses: HypothesisFamily = function* ({
  sample,
  input,
}: HypothesisContext) {
  const damaged = sample.filter((row) => row.damaged);
  const known = input.outputs.lse === null ? [readings[1]] : readings;
  for (const { id, technique, cause, lse } of known) {
    const relative = relativeError(damaged, id === 'row-sum-scale');
    if (relative <= -1 + 2 ** -20 || relative === 0) continue;
    yield {
      id,
      technique: input.outputs.lse === null ? null : technique,
      statement: `${describe(relative)}: ${input.outputs.lse === null ? 'row sum or final scale' : cause}`,
      adjusted: true,
      predict: (row) =>
        scalePrediction(row, row.correct, 1 + relative, row.correct.lse + lse(relative)),
    };
  }
};

/** One wrong constant on all elements of the damaged rows. */
export const uniformOffsetHypotheses: HypothesisFamily = function* ({ sample }) {
  let cross = 0;
  let weights = 0;
  for (const { damaged, observed, correct } of sample)
    if (damaged)
      for (let c = 0; c < observed.length; c++) {
        cross += (observed[c] - correct.out[c]) / correct.noise;
        weights += 1 / correct.noise;
      }
  const offset = cross / weights;
  if (!Number.isFinite(offset) || offset === 0) return;
  yield {
    id: 'output-offset',
    technique: null,
    statement: `the output is ${Number(Math.abs(offset).toPrecision(3))} too ${offset > 0 ? 'high' : 'low'} on every element`,
    adjusted: true,
    predict: ({ correct }) => ({ ...correct, out: correct.out.map((x) => x + offset) }),
  };
};
