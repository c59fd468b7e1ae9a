import { decodeTensor } from '../formats/index.js';
import { RequestError } from '../request-error.js';
import type { RotaryTables } from './features.js';
import type { Problem, ProblemShape } from './problem.js';

/** The pairs of elements of a vector that are rotated together: t and t + pairs, or 2t and 2t + 1. */
export type RotaryLayout = 'halves' | 'neighbours';

/** The tables of a problem as numbers. */
export interface Rotation {
  /** The layouts that the tables may be meant for: one if every number is there twice. */
  readonly layouts: readonly RotaryLayout[];
  /** Number of pairs that are rotated: those of the first elements of a vector. */
  readonly pairs: number;
  /** A vector rotated by that many times the angles of a position; −1 undoes a rotation and its scaling. */
  readonly turn: (
    vector: Float64Array,
    position: number,
    layout: RotaryLayout,
    times: number,
  ) => Float64Array;
  /** The sizes |x·cos| + |y·sin| of the two products that each element of a rotated vector is the sum of. */
  readonly sizes: (vector: Float64Array, position: number, layout: RotaryLayout) => Float64Array;
}

/** Elements of the pair t of a vector. */
function pairAt(layout: RotaryLayout, pairs: number, t: number): readonly [number, number] {
  return layout === 'halves' ? [t, t + pairs] : [2 * t, 2 * t + 1];
}

/** The layout in which every number of some tables is doubled; null if none is. */
function doubledLayout(
  tables: readonly Float64Array[],
  columns: number,
  dim: number,
): RotaryLayout | null {
  if (columns % 2 === 1 || columns > dim) return null;
  const pairs = columns / 2;
  const isDoubled = (layout: RotaryLayout) =>
    tables.every((table) => {
      for (let from = 0; from < table.length; from += columns)
        for (let t = 0; t < pairs; t++) {
          const [a, b] = pairAt(layout, pairs, t);
          if (table[from + a] !== table[from + b]) return false;
        }
      return true;
    });
  return (['halves', 'neighbours'] as const).find(isDoubled) ?? null;
}

/**
 * The rotations of tables, of vectors of some dimension. A vector is rotated in fp64.
 * @throws RequestError for tables that rotate more elements than a vector has
 */
export function createRotation({ cos, sin }: RotaryTables, dim: number): Rotation {
  const columns = cos.shape.at(-1) ?? 0;
  const [ofCos, ofSin] = [decodeTensor(cos), decodeTensor(sin)];
  const doubled = doubledLayout([ofCos, ofSin], columns, dim);
  const pairs = doubled === null ? columns : columns / 2;
  if (2 * pairs > dim)
    throw new RequestError(
      `rope_cos has ${columns} columns, q and k have ${dim} elements; give a column for each pair of them, or each twice`,
    );
  const tableAt = (position: number, t: number) =>
    position * columns + (doubled === null ? t : pairAt(doubled, pairs, t)[0]);
  const turn = (vector: Float64Array, position: number, layout: RotaryLayout, times: number) => {
    const turned = vector.slice();
    for (let t = 0; t < pairs; t++) {
      const [a, b] = pairAt(layout, pairs, t);
      const at = tableAt(position, t);
      const inverse = times < 0;
      const size = inverse ? ofCos[at] ** 2 + ofSin[at] ** 2 : 1;
      const [c, s] = [ofCos[at] / size, (inverse ? -ofSin[at] : ofSin[at]) / size];
      for (let done = 0; done < Math.abs(times); done++)
        [turned[a], turned[b]] = [turned[a] * c - turned[b] * s, turned[b] * c + turned[a] * s];
    }
    return turned;
  };
  const sizes = (vector: Float64Array, position: number, layout: RotaryLayout) => {
    const found = vector.map(Math.abs);
    for (let t = 0; t < pairs; t++) {
      const [a, b] = pairAt(layout, pairs, t);
      const at = tableAt(position, t);
      const [c, s] = [Math.abs(ofCos[at]), Math.abs(ofSin[at])];
      [found[a], found[b]] = [found[a] * c + found[b] * s, found[b] * c + found[a] * s];
    }
    return found;
  };
  return { layouts: doubled === null ? ['halves', 'neighbours'] : [doubled], pairs, turn, sizes };
}

/**
 * Checks the shapes of tables against their problem.
 * @throws RequestError for tables of different or wrong shapes, and without a row for every position
 */
export function checkRotarySizes(problem: Problem, { queries, keys }: ProblemShape): void {
  const { rotary, sequences, rows } = problem;
  if (rotary === undefined) return;
  const { cos, sin } = rotary;
  for (const [name, { shape }] of Object.entries({ rope_cos: cos, rope_sin: sin }))
    if (shape.length !== 2 || String(shape) !== String(cos.shape))
      throw new RequestError(
        `${name} has shape [${shape.join(', ')}]; give rope_cos and rope_sin as [positions, pairs], both the same`,
      );
  const [positions] = cos.shape;
  const lengths = sequences?.flatMap((one) => [one.keys, one.queries]) ?? [
    keys,
    rows?.of ?? queries,
  ];
  const needed = lengths.reduce((a, b) => Math.max(a, b), 0);
  if (positions < needed)
    throw new RequestError(
      `rope_cos has ${positions} positions, and a sequence has ${needed}; give a row for each`,
    );
}

/**
 * Checks the elements of tables: for once in the life of a problem.
 * @throws RequestError for elements that are no finite numbers, and for columns of more pairs than there are
 */
export function checkRotaryElements({ rotary, q }: Problem): void {
  if (rotary === undefined) return;
  for (const [name, tensor] of Object.entries({ rope_cos: rotary.cos, rope_sin: rotary.sin }))
    if (!decodeTensor(tensor).every((x) => Number.isFinite(x)))
      throw new RequestError(`${name} has an element that is no finite number; give numbers`);
  createRotation(rotary, q.shape.at(-1) ?? 0);
}
