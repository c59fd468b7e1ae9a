import type { Problem } from '../../src/problem/index.js';
import {
  arrangeProblem,
  composeSequences,
  indices,
  repeatedIndices,
  sequencesOf,
  wholePart,
  type SequencePart,
} from '../laws/index.js';
import { usualLimits } from './dimensions.js';
import { posed } from './posed-form.js';
import { countsUpTo, packedProblem, type Made, type Scene, type Surroundings } from './scene.js';

/** All rows of the compared sequence, in the order in which it has them. */
function placeIn({ sequence }: Scene): Surroundings['place'] {
  return ({ head, query }) => ({ sequence, head, query });
}

/** Elements of the keys of a sequence, or of its queries if these are more. */
function sequenceElements({ problem, shape, sequence }: Scene): number {
  const { queries, keys } = sequencesOf(problem)[sequence];
  const { heads, kvHeads, qkDim, vDim } = shape;
  return Math.max(queries * heads, keys * kvHeads) * Math.max(qkDim, vDim);
}

/** Sequences of the given problem side by side; the rows of the one at `place` are compared. */
function batchOf({ problem, form }: Scene, order: readonly number[], place: number): Made {
  if (problem.sequences === undefined)
    return { problem: arrangeProblem(problem, { batches: order }), rows: { batches: [place] } };
  const parts = order.map((sequence) => wholePart(problem, sequence));
  return packed(problem, form, parts, place);
}

/** Parts of packed sequences side by side; the rows of the one at `place` are compared. */
function packed(
  problem: Problem,
  form: Scene['form'],
  parts: readonly SequencePart[],
  place: number,
): Made {
  const made = composeSequences(problem, parts);
  const { firstQuery, queries } = made.sequences![place];
  return { problem: posed(made, form), rows: { queries: indices(queries, firstQuery) } };
}

/** The compared sequence, then those behind it and before it, over and over again. */
function companyOf({ problem, sequence }: Scene, count: number): number[] {
  const all = sequencesOf(problem).length;
  return indices(count).map((i) => (sequence + i) % all);
}

/** The sequence alone, then with more and more others behind it. */
export function batchSizes(scene: Scene): Surroundings {
  const { batch: unit } = scene.promises.multiples;
  return {
    values: countsUpTo(scene, 'batch', sequenceElements(scene), unit),
    make: (count) => batchOf(scene, companyOf(scene, count), 0),
    place: placeIn(scene),
  };
}

/** The sequence first, then at each other place of a batch. */
export function places(scene: Scene): Surroundings {
  const last = scene.limits.place ?? usualLimits.place;
  const [self, ...others] = companyOf(scene, last + 1);
  return {
    values: indices(last + 1),
    make: (place) => batchOf(scene, others.toSpliced(place, 0, self), place),
    place: placeIn(scene),
  };
}

/** A sequence with queries and keys to make a neighbour of: the next one, or the compared one itself. */
function neighbourOf(scene: Scene, problem: Problem) {
  const sequences = sequencesOf(problem);
  const [self, ...others] = companyOf(scene, sequences.length);
  const next = others.find((index) => sequences[index].queries > 0 && sequences[index].keys > 0);
  const index = next ?? self;
  const { queries, keys } = sequences[index];
  return (queryCount: number, keyCount: number): SequencePart => ({
    sequence: index,
    queries: repeatedIndices(queryCount, queries),
    keys: repeatedIndices(keyCount, keys),
  });
}

/** The sequence with one other, which has one query and more and more keys. */
export function neighbourKeys(scene: Scene): Surroundings {
  const problem = packedProblem(scene);
  const { kvHeads, qkDim, vDim } = scene.shape;
  const { queries = 1, keys } = scene.promises.multiples;
  const neighbour = neighbourOf(scene, problem);
  const self = wholePart(problem, scene.sequence);
  return {
    values: countsUpTo(scene, 'neighbour-keys', kvHeads * Math.max(qkDim, vDim), keys),
    make: (count) => packed(problem, scene.form, [self, neighbour(queries, count)], 0),
    place: placeIn(scene),
  };
}

/** The sequence with one other, which has more and more queries, and as many keys as most of them. */
export function neighbourQueries(scene: Scene): Surroundings {
  const problem = packedProblem(scene);
  const { heads, qkDim, vDim } = scene.shape;
  const { queries: unit, keys: keyUnit = 1 } = scene.promises.multiples;
  const elements = heads * Math.max(qkDim, vDim);
  const values = countsUpTo(scene, 'neighbour-queries', elements, unit);
  const keys = Math.ceil((values.at(-1) ?? 1) / keyUnit) * keyUnit;
  const neighbour = neighbourOf(scene, problem);
  const self = wholePart(problem, scene.sequence);
  return {
    values,
    make: (count) => packed(problem, scene.form, [self, neighbour(count, keys)], 0),
    place: placeIn(scene),
  };
}

/**
 * The sequence alone with its last query only, then with more and more of those before it: masks are aligned to the
 * bottom right, so that the last one sees the same keys. Beyond its first query those that it has come again.
 */
export function queryCounts(scene: Scene): Surroundings {
  const { problem, shape, sequence, form } = scene;
  const { queries, keys } = sequencesOf(problem)[sequence];
  const elements = shape.heads * Math.max(shape.qkDim, shape.vDim);
  const { queries: unit } = scene.promises.multiples;
  const isAsked = scene.limits.queries !== undefined;
  const all = countsUpTo(scene, 'queries', elements, unit);
  const last = (count: number) =>
    indices(count).map((i) => (((queries - count + i) % queries) + queries) % queries);
  const make = (count: number): Made => {
    const kept = { queries: [count - 1] };
    if (problem.sequences === undefined) {
      const rows = { batches: [sequence], queries: last(count) };
      return { problem: arrangeProblem(problem, rows), rows: kept };
    }
    const part = { ...wholePart(problem, sequence), queries: last(count) };
    return { ...packed(problem, form, [part], 0), rows: kept };
  };
  return {
    values: isAsked ? all : all.filter((count) => count <= Math.max(queries, keys)),
    make,
    place: ({ head }) => ({ sequence, head, query: queries - 1 }),
  };
}

/** The sequence alone with its first kv head, then with more and more of the others. */
export function headCounts(scene: Scene): Surroundings {
  const { kvHeads, groupSize } = scene.shape;
  const { kvHeads: unit } = scene.promises.multiples;
  const alone = batchOf(scene, [scene.sequence], 0).problem;
  const elements = sequenceElements(scene) / Math.max(1, kvHeads);
  const ofFirst = indices(groupSize);
  return {
    values: countsUpTo(scene, 'heads', elements, unit),
    make: (count) => {
      const kept = repeatedIndices(count, kvHeads);
      const heads = kept.flatMap((kvHead) => indices(groupSize, kvHead * groupSize));
      const problem = arrangeProblem(alone, { heads, kvHeads: kept });
      return { problem: posed(problem, scene.form), rows: { heads: ofFirst } };
    },
    place: placeIn(scene),
  };
}
