import { describePlace, elementAt } from '../../src/audit/index.js';
import { encode, formats } from '../../src/formats/index.js';
import type { Problem } from '../../src/problem/index.js';
import type { KernelRun, Law } from '../suite/law.js';
import { compareRuns, describeDifference } from './compare-runs.js';
import { copyProblem, replaceElements } from './transform-problem.js';
import { worstCaseViolation } from './worst-case-violation.js';

function withOnes(problem: Problem): Problem {
  const copy = copyProblem(problem);
  const one = encode(formats[problem.v.format], 1);
  return { ...copy, v: replaceElements(copy.v, () => one) };
}

/** The first element that is not what the first of its row is, NaNs alike; −1 for none. */
function firstUneven({ out, shape: { vDim } }: KernelRun): number {
  return out.findIndex((value, i) => {
    const first = out[i - (i % vDim)];
    return value !== first && !(Number.isNaN(value) && Number.isNaN(first));
  });
}

/**
 * V replaced by 1 everywhere: exact attention is 1 in every row that sees a key. O is held to its worst-case
 * bound around that: roundings of weights that are alike in all rows do not average out here. To the last bit, all columns of a row must be alike too, since they are made by the
 * same operations on the same numbers, and the LSE that of the problem as it was: V is no part of it.
 */
export const weightsSumToOne: Law = {
  statement: 'With V = 1, every output is 1, the same in all columns, and the LSE is as before',
  reason:
    'The weights of a row sum to one whatever the scores are; where the row sum counts what the product with V does not, or the reverse, they do not. A column or an LSE that differs read what is none of its business.',
  strengths: ['bits', 'bound'],
  usual: 'bound',
  choices: 1,
  violation: async ({ problem }, { run, judge, strength }) => {
    const ones = await run(withOnes(problem));
    const judged = worstCaseViolation(judge(ones));
    if (judged !== null) return `with V = 1, ${judged}`;
    if (strength === 'bound') return null;
    const uneven = firstUneven(ones);
    if (uneven >= 0) {
      const first = uneven - (uneven % ones.shape.vDim);
      return `with V = 1, O at ${describePlace(elementAt(ones.shape, uneven))} is ${ones.out[uneven]} but ${ones.out[first]} in column 0`;
    }
    if (ones.lse === null) return null;
    const { difference } = compareRuns(await run(problem), ones, { elements: () => false });
    return difference && describeDifference(difference, '', 'with V = 1');
  },
};
