import * as fc from 'fast-check';
import { formats, type NumberFormat } from '../../src/formats/index.js';
import type { Problem } from '../../src/problem/index.js';
import {
  decodeProblem,
  encodeProblem,
  randomValues,
  type PlainProblem,
  type ProblemConstraints,
  type RandomValues,
} from '../problems/index.js';
import type { ProblemPromises } from './kernel-under-test.js';
import { drawnAt, promisedConstraints } from './promised-problem.js';

/** What values are made of: a problem with its shape, masks and scale. */
interface ValuedRequest {
  readonly plain: PlainProblem;
  /** Of Q, K and V. */
  readonly format: NumberFormat;
  readonly random: RandomValues;
  readonly promises: ProblemPromises;
}

/** The values of a problem, and a scale in place of its own. */
export type ProblemValuer = (
  request: ValuedRequest,
) => Pick<PlainProblem, 'values'> & Partial<Pick<PlainProblem, 'scale'>>;

/**
 * Problems in the sizes, formats and masks that are promised, with values that a law makes for them,
 * the same for the same random numbers. They shrink in shape and masks, with values made anew.
 * @param constraints beyond the promises
 * @param drawn sizes that they are drawn at, in place of all that the constraints allow; null for none
 */
export function valuedProblem(
  promises: ProblemPromises,
  constraints: ProblemConstraints,
  valuer: ProblemValuer,
  drawn: ProblemConstraints | null = null,
): fc.Arbitrary<Problem> {
  // Values play no part: zeros leave nothing in them to shrink.
  const frame = drawnAt(
    { ...promisedConstraints(promises), ...constraints, regimes: ['zeros'] },
    drawn,
  );
  const seed = fc.noShrink(fc.noBias(fc.integer({ min: 0, max: 2 ** 31 - 1 })));
  return fc.tuple(frame, seed).map(([problem, from]) => {
    const plain = decodeProblem(problem);
    const format = formats[plain.formats.q];
    const random = randomValues(from);
    return encodeProblem({ ...plain, ...valuer({ plain, format, random, promises }) });
  });
}

/** An array of the size of one of a problem's tensors, from the place of each row and column. */
export function fillRows(
  heads: number,
  rows: number,
  columns: number,
  value: (head: number, row: number, column: number) => number,
): Float64Array {
  const values = new Float64Array(heads * rows * columns);
  let at = 0;
  for (let head = 0; head < heads; head++)
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++) values[at++] = value(head, row, column);
  return values;
}
