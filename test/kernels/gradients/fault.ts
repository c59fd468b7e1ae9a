import { problemShape, type Problem } from '../../../src/problem/index.js';
import type { seededRandom } from '../features/index.js';
import { normalProblem } from '../features/index.js';
import { backwardKernel, type BackwardKernel } from './backward-kernel.js';
import type { FactorMatrix, GradientOf, SharedOf } from './backward-steps.js';
import type { BackwardOptions } from './forward-pass.js';

/** A plain backward kernel with one fault. */
export interface FaultyBackward {
  readonly name: string;
  /** The public thread that tells of it, or `damage` for one that is planted. */
  readonly source: string;
  readonly mechanism: string;
  /** The gradients that are wrong; the others of Q, K and V have the bits of the correct kernel. */
  readonly wrong: readonly (GradientOf | SharedOf)[];
  /** Whether the fault does anything on a problem; elsewhere the kernel has the bits of the correct one. */
  readonly touches: (problem: Problem) => boolean;
  /** A problem on which it is off by more than rounding. */
  readonly example: (random: ReturnType<typeof seededRandom>) => Problem;
  readonly kernel: BackwardKernel;
  /** How many times as far off as the correct kernel a wrong gradient is there, at least; default 3. */
  readonly least?: number;
}

export type Change = NonNullable<BackwardOptions['change']>;

/** A fault of steps of the plain kernel. */
export function faulty(
  [name, source, mechanism]: readonly [name: string, source: string, mechanism: string],
  wrong: FaultyBackward['wrong'],
  where: Pick<FaultyBackward, 'touches' | 'example' | 'least'>,
  change: Change,
): FaultyBackward {
  return { name, source, mechanism, wrong, ...where, kernel: backwardKernel({ change }) };
}

/** Rows and keys of a tile of the faults that lose one. */
export const tile = 64;

/** Two heads that share K and V, three tiles of queries and four of keys. */
export const anywhere: Pick<FaultyBackward, 'touches' | 'example'> = {
  touches: () => true,
  example: (random) =>
    normalProblem(random, { batch: 1, heads: 2, kvHeads: 1, queries: 150, keys: 200 }),
};

/** Wherever there is more than one tile of queries and of keys. */
export const inTiles: typeof anywhere = {
  ...anywhere,
  touches: (problem) => {
    const { queries, keys } = problemShape(problem);
    return queries > tile && keys > tile;
  },
};

/** A part of a matrix [queries, keys]. */
export interface MatrixPart {
  readonly rows: number;
  readonly columns: number;
  readonly firstRow: number;
  readonly firstColumn: number;
}

/** Replaces the elements of a part of a matrix by a function of their rows and columns in it, in place. */
export function replacePart(
  { values }: FactorMatrix,
  keys: number,
  { rows, columns, firstRow, firstColumn }: MatrixPart,
  element: (row: number, column: number, old: Float32Array) => number,
): Float32Array {
  const old = values.slice();
  for (let row = firstRow; row < firstRow + rows; row++)
    for (let column = firstColumn; column < firstColumn + columns; column++)
      values[row * keys + column] = element(row, column, old);
  return values;
}
