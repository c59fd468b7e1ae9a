import { sliceRows, type Tensor } from '../../formats/index.js';
import {
  type BlockMask,
  listsOfHead,
  changeFeatures,
  dropFeature,
  keepFeature,
  type Problem,
  type ProblemFeatures,
  type ProblemShape,
} from '../../problem/index.js';

/** A tensor of booleans, integers or other numbers, without the type of its elements. */
interface Sized {
  readonly shape: readonly number[];
  readonly data: { readonly length: number; subarray(begin: number, end: number): unknown };
}

/** One head: its batch, and its number within the batch. */
interface HeadPlace {
  readonly batch: number;
  readonly head: number;
}

/** The index on an axis: 0 on an axis that is broadcast. */
function indexOn(size: number, index: number): number {
  return size === 1 ? 0 : index;
}

/** The part of a tensor that belongs to one head; the sizes before the last `kept` are those of batch and heads. */
function ofHead<T extends Sized>(tensor: T, kept: number, { batch, head }: HeadPlace): T {
  const { shape, data } = tensor;
  const rest = shape.slice(Math.max(0, shape.length - kept));
  const [batches, heads] = [1, 1, ...shape.slice(0, Math.max(0, shape.length - kept))].slice(-2);
  const size = rest.reduce((product, one) => product * one, 1);
  const at = (indexOn(batches, batch) * heads + indexOn(heads, head)) * size;
  return { ...tensor, shape: [1, 1, ...rest], data: data.subarray(at, at + size) };
}

/**
 * The same where the batch counts packed sequences: a head keeps all of them. Data are copied where several
 * heads have their own.
 */
function ofHeadInSequences<T extends Sized>(tensor: T, kept: number, { head }: HeadPlace): T {
  const { shape, data } = tensor;
  const rest = shape.slice(Math.max(0, shape.length - kept));
  const [sequences, heads] = [1, 1, ...shape.slice(0, Math.max(0, shape.length - kept))].slice(-2);
  const all = [sequences, 1, ...rest];
  if (heads === 1) return { ...tensor, shape: all };
  const size = rest.reduce((product, one) => product * one, 1);
  const Data = data.constructor as new (length: number) => typeof data & {
    set(from: unknown, at: number): void;
  };
  const own = new Data(sequences * size);
  for (let sequence = 0; sequence < sequences; sequence++) {
    const from = (sequence * heads + head) * size;
    own.set(data.subarray(from, from + size), sequence * size);
  }
  return { ...tensor, shape: all, data: own };
}

/** The features of a problem for one head, but for a sample of rows. */
function featuresOfHead(problem: Problem, place: HeadPlace, groupSize: number): ProblemFeatures {
  const { sequences } = problem;
  const cut = sequences === undefined ? ofHead : ofHeadInSequences;
  // The sizes of segments are [batch, length] or [length].
  const ofBatch = <T extends Sized>(tensor: T): T => {
    const length = tensor.shape.at(-1) ?? 0;
    if (tensor.shape.length === 1) return tensor;
    const at = place.batch * length;
    return { ...tensor, shape: [length], data: tensor.data.subarray(at, at + length) };
  };
  const ofBlocks = ({ counts, indices, ...sizes }: BlockMask): BlockMask => ({
    ...sizes,
    counts: ofHead(counts, 1, place),
    indices: ofHead(indices, 2, place),
  });
  const slopes = (tensor: Tensor): Tensor => {
    const own = cut(tensor, 0, place);
    return tensor.shape.length === 1 ? { ...own, shape: [1] } : own;
  };
  return changeFeatures(problem, {
    mask: (mask) => cut(mask, 2, place),
    bias: (bias) => cut(bias, 2, place),
    alibiSlopes: slopes,
    sink: (sink) => ({ ...sink, logits: { ...ofHead(sink.logits, 0, place), shape: [1] } }),
    segments: ({ queries, keys }) => ({ queries: ofBatch(queries), keys: ofBatch(keys) }),
    prefix: keepFeature,
    blockMask: ofBlocks,
    keyLists: (lists) =>
      listsOfHead(lists, {
        batch: sequences === undefined ? place.batch : 0,
        kvHead: Math.floor(place.head / groupSize),
      }),
    dropout: (dropout) => ({ ...dropout, kept: cut(dropout.kept, 2, place) }),
    sequences: keepFeature,
    keyRanges: (ranges) => (sequences === undefined ? [ranges[place.batch]] : ranges),
    rows: dropFeature,
  });
}

/**
 * Queries [firstRow, firstRow + rows) of one head as a problem of their own, with all keys and values of its kv
 * head. They see the same keys as before: where not all queries are taken, `rows` lists them. Shares memory with
 * the problem.
 * @param head counted over [batch, heads]
 */
export function headRows(
  problem: Problem,
  shape: ProblemShape,
  head: number,
  firstRow: number,
  rows: number,
): Problem {
  const { heads, kvHeads, groupSize, queries, keys } = shape;
  const place = { batch: Math.floor(head / heads), head: head % heads };
  const kv = place.batch * kvHeads + Math.floor(place.head / groupSize);
  const first = head * queries + firstRow;
  const selected =
    problem.rows?.queries.subarray(first, first + rows) ??
    Int32Array.from({ length: rows }, (_, i) => firstRow + i);
  const isWhole = problem.rows === undefined && rows === queries;
  const { scale, causal, window, softcap, rotary, lseShift } = problem;
  return {
    q: sliceRows(problem.q, first, rows),
    k: sliceRows(problem.k, kv * keys, keys),
    v: sliceRows(problem.v, kv * keys, keys),
    scale,
    causal,
    window,
    softcap,
    ...featuresOfHead(problem, place, groupSize),
    ...(rotary && { rotary }),
    ...(lseShift && {
      lseShift: {
        values: lseShift.values.subarray(first, first + rows),
        errors: lseShift.errors.subarray(first, first + rows),
      },
    }),
    ...(!isWhole && { rows: { queries: selected, of: problem.rows?.of ?? queries } }),
  };
}
