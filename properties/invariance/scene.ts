import {
  problemShape,
  type Problem,
  type ProblemShape,
  type StoredForm,
} from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import {
  NotApplicable,
  packBatches,
  sequencesOf,
  type ProblemPromises,
  type RowArrangement,
} from '../laws/index.js';
import { takesSequences } from '../problems/index.js';
import { usualLimits, type LimitedDimension } from './dimensions.js';
import { formOf } from './posed-form.js';
import type { RowAt } from './row-change.js';

/** A problem, the sequence whose rows are compared, and how far its surroundings are changed. */
export interface Scene {
  readonly problem: Problem;
  readonly shape: ProblemShape;
  /** The form in which packed sequences are posed; null for one behind the other. */
  readonly form: StoredForm | null;
  /** The compared sequence, or batch. */
  readonly sequence: number;
  readonly promises: ProblemPromises;
  readonly limits: Readonly<Partial<Record<LimitedDimension, number>>>;
}

/** The place of a compared row: its sequence or batch, its query head, and its query in the sequence. */
export interface ComparedRow {
  readonly sequence: number;
  readonly head: number;
  readonly query: number;
}

/** The problem in some surroundings. */
export interface Made {
  readonly problem: Problem;
  /** Its rows that are compared. */
  readonly rows: RowArrangement;
  /** The number of splits that the kernel is asked for; left out where the kernel chooses. */
  readonly splits?: number;
}

/** A dimension of the surroundings of a problem. */
export interface Surroundings {
  /** Its values, ascending. */
  readonly values: readonly number[];
  /** The problem at a value. @throws NotApplicable, RequestError where there is no such problem */
  readonly make: (value: number) => Made;
  /** The place in the given problem of a compared row. */
  readonly place: (row: RowAt) => ComparedRow;
}

/** Elements of a tensor that are made at most, unless more are asked for. */
const mostElements = 2 ** 24;

/**
 * The multiples of `unit` up to a dimension's largest value: the one that is asked for, or the usual one, if a problem
 * of that size takes no longer to make than to run.
 * @param elements of the largest tensor, for each of the dimension's units
 */
export function countsUpTo(
  { limits }: Scene,
  dimension: LimitedDimension,
  elements: number,
  unit = 1,
): number[] {
  const affordable = Math.max(2 * unit, Math.floor(mostElements / Math.max(1, elements)));
  const most = limits[dimension] ?? Math.min(usualLimits[dimension], affordable);
  return Array.from({ length: Math.floor(most / unit) }, (_, i) => (i + 1) * unit);
}

/**
 * The problem with packed sequences.
 * @throws NotApplicable where the kernel takes none
 */
export function packedProblem({ problem, promises }: Scene): Problem {
  if (problem.sequences !== undefined) return problem;
  if (!takesSequences(promises.features))
    throw new NotApplicable('neither packed, padded nor paged sequences are promised');
  return packBatches(problem);
}

/**
 * A problem with one of its sequences to compare: the first with a query unless another is named.
 * @throws RequestError for one that there is not, or without queries
 */
export function setScene(
  problem: Problem,
  promises: ProblemPromises,
  limits: Scene['limits'],
  asked?: number,
): Scene {
  const sequences = sequencesOf(problem);
  const sequence = asked ?? sequences.findIndex(({ queries }) => queries > 0);
  if (!((sequences[sequence]?.queries ?? 0) > 0))
    throw new RequestError(
      asked === undefined
        ? 'the problem has no query; give one with a row to compare'
        : `sequence ${asked} has no query to compare; the problem has sequences 0 to ${sequences.length - 1}`,
    );
  const shape = problemShape(problem);
  return { problem, shape, form: formOf(problem), sequence, promises, limits };
}
