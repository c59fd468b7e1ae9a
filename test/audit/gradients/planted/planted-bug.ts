import { rowPlaces, type Problem, type ProblemShape } from '../../../../src/problem/index.js';
import type {
  BackwardOptions,
  BackwardSteps,
  RowStatistics,
} from '../../../kernels/gradients/index.js';
import type { PlantedProblem } from './problems.js';

/** What a bug changes of a correct backward pass. */
export type StepChange = NonNullable<BackwardOptions['change']>;

/** A bug of a backward pass, as a change of a correct one. */
export interface PlantedBug {
  /** Default: plain. */
  readonly on?: PlantedProblem;
  readonly change: StepChange;
  /** What the diagnosis may say is the cause, alone or among its equivalents. */
  readonly causes: readonly string[];
  /** Where it may say that is, in its words; default everywhere. */
  readonly place?: string;
}

/** Some of a problem; what is undefined it has not. */
export type ProblemChange = {
  readonly [Name in keyof Problem]?: Problem[Name] | undefined;
};

/** A problem with some of it changed. */
export function changedProblem(problem: Problem, change: ProblemChange): Problem {
  return { ...problem, ...change } as Problem;
}

/** Where a row is that a bug asks about. */
export interface RowAt {
  /** Batch entry, or packed sequence. */
  readonly sequence: number;
  /** Within the batch. */
  readonly head: number;
  /** Within its sequence. */
  readonly query: number;
}

/** A change that holds in some rows only: of what is made row by row. */
export function inRows(where: (row: RowAt) => boolean, change: StepChange): StepChange {
  return (steps, problem, shape) => {
    const { queries, keys } = shape;
    const placeOf = rowPlaces(problem, shape);
    const isIn = (head: number, query: number) => where(placeOf(head, query));
    const changed: BackwardSteps = { ...steps, ...change(steps, problem, shape) };
    const byRow = (own: Float32Array, other: Float32Array) =>
      own.map((x, row) => (isIn(Math.floor(row / queries), row % queries) ? other[row] : x));
    const noAddend = (_head: number, _query: number, _firstKey: number, target: Float64Array) =>
      target.fill(0);
    return {
      ranges: (head, query) => (isIn(head, query) ? changed : steps).ranges(head, query),
      addend: (head, query, firstKey, target) =>
        ((isIn(head, query) ? changed : steps).addend ?? noAddend)(head, query, firstKey, target),
      dropsP: (head, query) => (isIn(head, query) ? changed : steps).dropsP(head, query),
      dropsDp: (head, query) => (isIn(head, query) ? changed : steps).dropsDp(head, query),
      delta: (inputs) => byRow(steps.delta(inputs), changed.delta(inputs)),
      read: (stored): RowStatistics => {
        const [own, other] = [steps.read(stored), changed.read(stored)];
        return {
          logarithm: byRow(own.logarithm, other.logarithm),
          delta: byRow(own.delta, other.delta),
        };
      },
      factors: (matrix, read) => {
        const own = steps.factors({ ...matrix, values: matrix.values.slice() }, read);
        const other = changed.factors({ ...matrix, values: matrix.values.slice() }, read);
        return own.map((x, i) => (isIn(matrix.head, Math.floor(i / keys)) ? other[i] : x));
      },
    };
  };
}

/** A change of D alone, row by row. @param of the D that is used, from all of them */
export function ofDelta(
  of: (deltas: Float32Array, row: number, shape: ProblemShape, problem: Problem) => number,
): StepChange {
  return ({ read }, problem, shape) => ({
    read: (stored) => {
      const { logarithm, delta } = read(stored);
      return { logarithm, delta: delta.map((_, row) => of(delta, row, shape, problem)) };
    },
  });
}

/** A change of the LSE alone, row by row. */
export function ofLse(
  of: (logarithms: Float32Array, row: number, shape: ProblemShape) => number,
): StepChange {
  return ({ read }, _, shape) => ({
    read: (stored) => {
      const { logarithm, delta } = read(stored);
      return { delta, logarithm: logarithm.map((_x, row) => of(logarithm, row, shape)) };
    },
  });
}

/** The element of an array so far on, around its end. */
export function around<T>(all: ArrayLike<T>, index: number): T {
  return all[(index + all.length) % all.length];
}
