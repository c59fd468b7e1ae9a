import type { AttentionReference } from '../../oracles/index.js';
import {
  formats,
  patternsOf,
  scalesOfRows,
  storageOf,
  type PatternArray,
} from '../../src/formats/index.js';
import {
  problemShape,
  type Problem,
  type ProblemFeatures,
  type ProblemShape,
  type Tensor,
} from '../../src/problem/index.js';
import {
  arrangeFeatures,
  arrangementLoss,
  featuresOf,
  randomValues,
  type FeatureSelection,
} from '../problems/index.js';
import { NotApplicable, type KernelRun } from './law.js';

/** The batches, query heads and queries to keep, in order; an axis that is left out stays as it is. */
export interface RowArrangement {
  readonly batches?: readonly number[] | undefined;
  readonly heads?: readonly number[] | undefined;
  readonly queries?: readonly number[] | undefined;
}

/** The rows and keys to keep, in order; an index may be given more than once. */
export interface Arrangement extends RowArrangement {
  readonly kvHeads?: readonly number[] | undefined;
  readonly keys?: readonly number[] | undefined;
}

/** 0, 1, … up to `count` − 1, or from `first` on. */
export function indices(count: number, first = 0): number[] {
  return Array.from({ length: count }, (_, i) => first + i);
}

/** The places of the kept rows among [batches, heads, rows], in their new order. */
export function rowsKept(
  batches: readonly number[],
  heads: readonly number[],
  rows: readonly number[],
  headsBefore: number,
  rowsBefore: number,
): number[] {
  return batches.flatMap((batch) =>
    heads.flatMap((head) => rows.map((row) => (batch * headsBefore + head) * rowsBefore + row)),
  );
}

/** An array of the same kind with these rows of `width` elements. */
export function gather<T extends PatternArray | Float64Array>(
  source: T,
  rows: readonly number[],
  width: number,
): T {
  const target = new (source.constructor as new (length: number) => T)(rows.length * width);
  rows.forEach((row, i) => target.set(source.subarray(row * width, (row + 1) * width), i * width));
  return target;
}

/** The tensor with these rows, to the bit; `leading` are its new dimensions except the last. */
export function gatherTensor(
  tensor: Tensor,
  rows: readonly number[],
  leading: readonly number[],
): Tensor {
  const { format, shape, data } = tensor;
  const width = shape.at(-1)!;
  const words = formats[format].storageBits === 64 ? 2 : 1;
  const patterns = gather(patternsOf(data, formats[format]), rows, width * words);
  const scales = scalesOfRows(tensor, leading, (index) => rows[index]);
  return {
    format,
    shape: [...leading, width],
    data: storageOf(formats[format], patterns),
    ...(scales !== undefined && { scales }),
  };
}

/** The rows of O that an arrangement keeps, counted over [batch, heads, queries]. */
export function outputRows(shape: ProblemShape, arrangement: RowArrangement): number[] {
  const batches = arrangement.batches ?? indices(shape.batch);
  const heads = arrangement.heads ?? indices(shape.heads);
  const queries = arrangement.queries ?? indices(shape.queries);
  return rowsKept(batches, heads, queries, shape.heads, shape.queries);
}

/**
 * The problem with its batches, heads, queries and keys as arranged, to the bit, of rank 4. That
 * every query head still finds its kv head, and what causal masks, windows and ALiBi make of other lengths, is the
 * caller's concern; masks, biases, segments and kept weights go with their rows, heads and keys.
 * @throws NotApplicable where a feature depends on places that the arrangement changes
 */
export function arrangeProblem(problem: Problem, arrangement: Arrangement): Problem {
  const shape = problemShape(problem);
  const selection = {
    batches: arrangement.batches ?? indices(shape.batch),
    heads: arrangement.heads ?? indices(shape.heads),
    queries: arrangement.queries ?? indices(shape.queries),
    keys: arrangement.keys ?? indices(shape.keys),
    ...(arrangement.kvHeads !== undefined && { kvHeads: arrangement.kvHeads }),
  };
  return { ...arrangeTensors(problem, arrangement), ...featuresLeft(problem, shape, selection) };
}

/** The problem with Q, K and V arranged, and no features. */
export function arrangeTensors(problem: Problem, arrangement: Arrangement): Problem {
  const shape = problemShape(problem);
  const batches = arrangement.batches ?? indices(shape.batch);
  const heads = arrangement.heads ?? indices(shape.heads);
  const queries = arrangement.queries ?? indices(shape.queries);
  const kvHeads = arrangement.kvHeads ?? indices(shape.kvHeads);
  const keys = arrangement.keys ?? indices(shape.keys);
  const keyRows = rowsKept(batches, kvHeads, keys, shape.kvHeads, shape.keys);
  const keyDims = [batches.length, kvHeads.length, keys.length];
  return {
    ...problemSettings(problem),
    q: gatherTensor(problem.q, outputRows(shape, arrangement), [
      batches.length,
      heads.length,
      queries.length,
    ]),
    k: gatherTensor(problem.k, keyRows, keyDims),
    v: gatherTensor(problem.v, keyRows, keyDims),
  };
}

/** Everything of a problem but its tensors, without attachments of a generator. */
function problemSettings({ scale, causal, window, softcap }: Problem) {
  return { scale, causal, window, softcap };
}

/** @throws NotApplicable as `arrangeProblem`, and where a mask would hide everything */
function featuresLeft(
  problem: Problem,
  shape: ProblemShape,
  selection: FeatureSelection,
): ProblemFeatures {
  const given = featuresOf(problem);
  if (Object.keys(given).length === 0) return given;
  const loss = arrangementLoss(given, shape, selection);
  if (loss !== null) throw new NotApplicable(`the problem cannot be put in another order: ${loss}`);
  const left = arrangeFeatures(given, selection);
  // A mask that is false everywhere is refused as a mistake.
  if (left.mask !== undefined && !left.mask.data.includes(1))
    throw new NotApplicable('what is left of its mask hides every key');
  return left;
}

/** The same problem in memory of its own. */
export function copyProblem(problem: Problem): Problem {
  return { ...arrangeTensors(problem, {}), ...featuresOf(problem) };
}

/**
 * The exact attention of an arranged problem, from that of the whole: the rows as arranged.
 * @param arranged the problem whose exact attention it is
 */
export function arrangeReference(
  reference: AttentionReference,
  arrangement: RowArrangement,
  arranged: Problem,
): AttentionReference {
  const { vDim } = reference.shape;
  const rows = outputRows(reference.shape, arrangement);
  const { out, lse } = reference.quantities;
  const elements = (values: Float64Array) => gather(values, rows, vDim);
  const perRow = (values: Float64Array) => gather(values, rows, 1);
  return {
    shape: problemShape(arranged),
    quantities: {
      out: {
        values: elements(out.values),
        radius: elements(out.radius),
        magnitude: elements(out.magnitude),
      },
      lse: { values: perRow(lse.values), radius: perRow(lse.radius), magnitude: null },
    },
    maximum: perRow(reference.maximum),
    denominator: perRow(reference.denominator),
    level: Uint8Array.from(rows, (row) => reference.level[row]),
  };
}

/** The results of some rows. */
export type RunResults = Pick<KernelRun, 'shape' | 'out' | 'lse'>;

/** A run's results with their rows as arranged. */
export function arrangeResults(
  { shape, out, lse }: RunResults,
  arrangement: RowArrangement,
): RunResults {
  const rows = outputRows(shape, arrangement);
  return {
    shape: {
      ...shape,
      batch: arrangement.batches?.length ?? shape.batch,
      heads: arrangement.heads?.length ?? shape.heads,
      queries: arrangement.queries?.length ?? shape.queries,
    },
    out: gather(out, rows, shape.vDim),
    lse: lse && gather(lse, rows, 1),
  };
}

/**
 * An order of 0, 1, … up to `count` − 1: backwards for choice 0, else drawn at random, the same for
 * the same count and choice.
 */
export function permutation(count: number, choice: number): number[] {
  const order = indices(count).reverse();
  if (choice === 0) return order;
  const random = randomValues(Math.imul(choice, 0x9e3779b1) ^ count);
  for (let i = count - 1; i > 0; i--) {
    const j = random.integer(0, i);
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

/**
 * One of 0, 1, … up to `count` − 1 for each choice below `choices`, spread evenly: 0 for choice 0.
 */
export function spreadChoice(choice: number, choices: number, count: number): number {
  return Math.floor((choice * count) / choices);
}
