import type { Problem } from '../../../problem/index.js';
import type { Hypothesis, HypothesisContext } from '../hypothesis.js';
import { predictWeighted, softmaxRow } from '../prediction.js';

/** A wrong reading of a feature: another problem with the same q, k and v. */
export interface FeatureFault {
  readonly id: string;
  readonly technique: string | null;
  readonly statement: string;
  readonly problem: Problem;
}

function isSame(a: Float64Array, b: Float64Array): boolean {
  return a.length === b.length && a.every((x, i) => x === b[i]);
}

/** The hypothesis that each row is that of the other problem. */
export function featureHypothesis(
  { reader }: HypothesisContext,
  { id, technique, statement, problem }: FeatureFault,
): Hypothesis {
  const other = reader.as(problem);
  return {
    id,
    technique,
    statement,
    predict: (row) => {
      const scores = other.scores(row.row);
      const values = other.valuesOf(row.row, row.kv);
      const own = reader.scores(row.row);
      const isUntouched =
        isSame(scores, own) &&
        isSame(values, reader.valuesOf(row.row, row.kv)) &&
        problem.sink?.inLse === reader.problem.sink?.inLse;
      if (isUntouched) return row.correct;
      const reported = (logarithm: number) => other.reportedLse(row.row, logarithm);
      return predictWeighted({ ...row, reported }, softmaxRow(scores, values));
    },
  };
}
