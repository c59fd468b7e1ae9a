import {
  problemShape,
  type Problem,
  type ProblemShape,
  type Sequence,
} from '../../../src/problem/index.js';
import { arrangeFeatures, featuresOf } from '../../problems/index.js';
import { NotApplicable } from '../law.js';
import type { RowArrangement } from '../transform-problem.js';
import { arrangeProblem, arrangeTensors, indices } from '../transform-problem.js';

/** Sequences of these lengths, one behind the other. */
function packedSequences(
  lengths: readonly Pick<Sequence, 'queries' | 'keys'>[],
): readonly Sequence[] {
  let [firstQuery, firstKey] = [0, 0];
  return lengths.map(({ queries, keys }) => {
    const sequence = { firstQuery, queries, firstKey, keys };
    firstQuery += queries;
    firstKey += keys;
    return sequence;
  });
}

/** The sequences of a problem: those that are packed, or its batches. */
export function sequencesOf(problem: Problem): readonly Pick<Sequence, 'queries' | 'keys'>[] {
  const { batch, queries, keys } = problemShape(problem);
  return problem.sequences ?? indices(batch).map(() => ({ queries, keys }));
}

function largest(lengths: readonly number[]): number {
  return lengths.reduce((most, length) => Math.max(most, length), 0);
}

/** The shape that masks, biases and kept weights of a problem are broadcast to. */
export function wholeSizesOf(problem: Problem): readonly number[] {
  const { batch, heads, queries, keys } = problemShape(problem);
  const { sequences } = problem;
  if (sequences === undefined) return [batch, heads, queries, keys];
  const most = (of: (sequence: Sequence) => number) => largest(sequences.map(of));
  return [sequences.length, heads, most((one) => one.queries), most((one) => one.keys)];
}

/** Rows of a packed sequence of a problem, in order, each as often as it is listed: a sequence of another problem. */
export interface SequencePart {
  readonly sequence: number;
  /** Counted within the sequence. */
  readonly queries: readonly number[];
  readonly keys: readonly number[];
}

/** The packed sequences of a problem. @throws NotApplicable where it has none */
function packedOf({ sequences }: Problem): readonly Sequence[] {
  if (sequences === undefined) throw new NotApplicable('the problem has no packed sequences');
  return sequences;
}

/** A packed sequence as it is. @throws NotApplicable where the problem has none */
export function wholePart(problem: Problem, sequence: number): SequencePart {
  const { queries, keys } = packedOf(problem)[sequence];
  return { sequence, queries: indices(queries), keys: indices(keys) };
}

/** 0, 1, … up to `count` − 1, over and over again: `length` of them. */
export function repeatedIndices(length: number, count: number): number[] {
  return indices(length).map((index) => index % count);
}

/**
 * Rows of the packed sequences of a problem as packed sequences of another. Broadcast tensors are picked along with
 * them: what lies behind the rows that a sequence had is that of its first rows again, where a part lists more.
 * @throws NotApplicable for a problem without packed sequences
 */
export function composeSequences(problem: Problem, parts: readonly SequencePart[]): Problem {
  const given = packedOf(problem);
  const { sequences, ...features } = featuresOf(problem);
  void sequences;
  const [, , mostQueries, mostKeys] = wholeSizesOf(problem);
  const inArea = (rows: readonly (readonly number[])[], most: number) =>
    rows.length === 1 ? rows[0] : repeatedIndices(largest(rows.map(({ length }) => length)), most);
  return {
    ...arrangeTensors(problem, {
      queries: parts.flatMap(({ sequence, queries }) =>
        queries.map((row) => given[sequence].firstQuery + row),
      ),
      keys: parts.flatMap(({ sequence, keys }) =>
        keys.map((row) => given[sequence].firstKey + row),
      ),
    }),
    ...arrangeFeatures(features, {
      batches: parts.map(({ sequence }) => sequence),
      heads: indices(problemShape(problem).heads),
      queries: inArea(
        parts.map(({ queries }) => queries),
        mostQueries,
      ),
      keys: inArea(
        parts.map(({ keys }) => keys),
        mostKeys,
      ),
    }),
    sequences: packedSequences(
      parts.map(({ queries, keys }) => ({ queries: queries.length, keys: keys.length })),
    ),
  };
}

/**
 * Some of the packed sequences of a problem, in another order, each as often as it is listed; broadcast tensors
 * are picked along with them.
 * @throws NotApplicable for a problem without packed sequences
 */
export function pickSequences(problem: Problem, order: readonly number[]): Problem {
  return composeSequences(
    problem,
    order.map((index) => wholePart(problem, index)),
  );
}

/** One packed sequence as a problem of its own, not packed. */
function unpacked(problem: Problem, index: number): Problem {
  const { sequences, ...alone } = pickSequences(problem, [index]);
  void sequences;
  return alone;
}

/** Whether rows or batches of Q, K or V have factors of their own. */
export function hasRowFactors({ q, k, v }: Problem): boolean {
  return [q, k, v].some(({ shape, scales }) =>
    (scales?.factors ?? []).some((factors) =>
      factors.shape.some(
        (count, axis) => count > 1 && axis !== shape.length - 3 && axis !== shape.length - 1,
      ),
    ),
  );
}

/**
 * The batches of a problem as packed sequences.
 * @throws NotApplicable where masks say where keys end in another way
 */
export function packBatches(problem: Problem): Problem {
  const shape = problemShape(problem);
  if (problem.sequences !== undefined) return problem;
  if (problem.segments !== undefined || problem.blockMask !== undefined)
    throw new NotApplicable('packed sequences have no segments and no block mask');
  if (problem.keyLists !== undefined) throw new NotApplicable('lists of keys are not packed here');
  if (hasRowFactors(problem))
    throw new NotApplicable('rows of packed sequences have no factors of their own');
  const { batch, queries, keys } = shape;
  const flat = (name: 'q' | 'k' | 'v') => packedTensor(problem, shape, name);
  return {
    ...problem,
    q: flat('q'),
    k: flat('k'),
    v: flat('v'),
    sequences: packedSequences(indices(batch).map(() => ({ queries, keys }))),
  };
}

/** [1, heads, batches · rows, dim] of [batches, heads, rows, dim]. */
function packedTensor(problem: Problem, { batch }: ProblemShape, name: 'q' | 'k' | 'v') {
  const [heads, rows, dim] = problem[name].shape.slice(-3);
  // As one batch of batches · heads heads, and then head by head.
  const single = { ...problem[name], shape: [1, batch * heads, rows, dim] };
  const order = indices(heads).flatMap((head) => indices(batch).map((b) => b * heads + head));
  const { q } = arrangeTensors(
    { q: single, k: single, v: single, scale: 1, causal: false, window: null, softcap: null },
    { heads: order, kvHeads: [0], keys: [0] },
  );
  return { ...q, shape: [1, heads, batch * rows, dim] };
}

/** A sequence by itself, and the rows of the problem that it is. */
export interface LoneSequence {
  readonly alone: Problem;
  readonly rows: RowArrangement;
}

/** One of the sequences, or batches, of a problem by itself. */
export function loneSequence(problem: Problem, index: number): LoneSequence {
  const sequence = problem.sequences?.[index];
  if (sequence === undefined)
    return {
      alone: arrangeProblem(problem, { batches: [index] }),
      rows: { batches: [index] },
    };
  return {
    alone: unpacked(problem, index),
    rows: { queries: indices(sequence.queries, sequence.firstQuery) },
  };
}

/** The range of a document's queries, or keys; null unless they follow one another. */
function runOf(segments: ArrayLike<number>, segment: number): readonly [number, number] | null {
  const places = Array.from(segments).flatMap((id, place) => (id === segment ? [place] : []));
  if (places.length === 0) return null;
  const [first, last] = [places[0], places[places.length - 1]];
  return last - first + 1 === places.length ? [first, places.length] : null;
}

/**
 * A document of a problem of one batch, or of documents that all batches share, by itself.
 * @throws NotApplicable for one whose rows do not follow one another, or whose diagonal lies elsewhere
 */
export function loneDocument(problem: Problem, segment: number): LoneSequence {
  const { segments, ...rest } = featuresOf(problem);
  const shape = problemShape(problem);
  const isShared = (tensor: { readonly shape: readonly number[] } | undefined) =>
    tensor !== undefined && (tensor.shape.length === 1 || shape.batch === 1);
  if (segments === undefined || !isShared(segments.queries) || !isShared(segments.keys))
    throw new NotApplicable('the problem has no documents that all batches share');
  const ofQueries = runOf(segments.queries.data, segment);
  const ofKeys = runOf(segments.keys.data, segment);
  if (ofQueries === null || ofKeys === null)
    throw new NotApplicable('the rows of the document do not follow one another');
  const [firstQuery, queries] = ofQueries;
  const [firstKey, keys] = ofKeys;
  const goesByPlaces =
    problem.causal || problem.window !== null || problem.alibiSlopes !== undefined;
  const offset = shape.keys - shape.queries - (firstKey - firstQuery);
  if (goesByPlaces && offset !== keys - queries)
    throw new NotApplicable('the diagonal of the document is not that of all');
  const rows = { queries: indices(queries, firstQuery) };
  const { q, k, v, scale, causal, window, softcap } = problem;
  const whole = { q, k, v, scale, causal, window, softcap, ...rest };
  return { alone: arrangeProblem(whole, { ...rows, keys: indices(keys, firstKey) }), rows };
}
