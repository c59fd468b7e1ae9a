import {
  describeReportedRecurrence,
  type ReportedRecurrence,
} from './contracts/recurrent-report.js';
import { describeReportedProblem, type ReportedProblem } from './reported/problem.js';

/** The sizes and settings of a problem of attention or of linear attention, in the words of one sentence. */
export function describeCheckedProblem(problem: ReportedProblem | ReportedRecurrence): string {
  return 'family' in problem
    ? describeReportedRecurrence(problem)
    : describeReportedProblem(problem);
}

/** Number of elements of Q, K and V. */
export function sizeOfProblem(problem: ReportedProblem | ReportedRecurrence): number {
  if ('family' in problem) {
    const { batch, tokens, keyHeads, valueHeads, keyDim, valueDim } = problem;
    return batch * tokens * (2 * keyHeads * keyDim + valueHeads * valueDim);
  }
  const { batch, heads, kvHeads, seqlenQ, seqlenK, qkDim, vDim } = problem;
  return batch * (heads * seqlenQ * qkDim + kvHeads * seqlenK * (qkDim + vDim));
}
