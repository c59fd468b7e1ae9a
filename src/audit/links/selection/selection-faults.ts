import { headsOf, type SelectionProblem } from '../../../../oracles/index.js';
import { decodeTensor, encodeFromFloat64, formats } from '../../../formats/index.js';
import type { Tensor } from '../../../problem/index.js';
import type { SelectionArithmetic } from './score-intervals.js';
import type { SelectionResults } from './judge-rows.js';

/** A selection as a kernel with a fault would pose and answer it. */
export interface FaultySelection {
  readonly problem: SelectionProblem;
  readonly results: SelectionResults;
  readonly arithmetic: SelectionArithmetic;
}

/** A mistake of a kernel that selects. */
export interface SelectionFault {
  readonly id: string;
  /** In words, without a full stop. */
  readonly sentence: string;
  /** The selection that a kernel with it makes right; null where it changes nothing here. */
  readonly apply: (given: FaultySelection) => FaultySelection | null;
}

/** A fault that changes the problem alone. */
function ofProblem(
  id: string,
  sentence: string,
  change: (problem: SelectionProblem) => Partial<SelectionProblem> | null,
): SelectionFault {
  return {
    id,
    sentence,
    apply: (given) => {
      const changed = change(given.problem);
      return changed === null ? null : { ...given, problem: { ...given.problem, ...changed } };
    },
  };
}

/** A tensor of other numbers: element i is that of the place `from(i)`, times a factor. */
function changedTensor(
  tensor: Tensor,
  from: (index: number) => number,
  factor = (_: number) => 1,
): Tensor {
  const values = decodeTensor(tensor);
  return {
    format: 'fp64',
    shape: tensor.shape,
    data: Float64Array.from(values, (_, i) => values[from(i)] * factor(i)),
  };
}

/** The place of the neighbour along an axis, which wraps around; of an axis of one null. */
function neighbour(tensor: Tensor | undefined, axis: number, step: number): Tensor | null {
  if (tensor === undefined || tensor.shape[axis] < 2) return null;
  const inner = tensor.shape.slice(axis + 1).reduce((a, b) => a * b, 1);
  const size = tensor.shape[axis];
  return changedTensor(tensor, (i) => {
    const at = Math.floor(i / inner) % size;
    return i + (((at + step + size) % size) - at) * inner;
  });
}

function withTensor<Name extends 'q' | 'k' | 'weights' | 'keyScale' | 'scores'>(
  name: Name,
  tensor: Tensor | null,
): Partial<SelectionProblem> | null {
  return tensor === null ? null : ({ [name]: tensor } as Partial<SelectionProblem>);
}

/** Ends of what rows see, changed; null where none changes. */
function withEnds(
  { end, shape }: SelectionProblem,
  change: (end: number, row: number) => number,
): Partial<SelectionProblem> | null {
  const changed = end.map((one, row) => Math.max(0, Math.min(shape.candidates, change(one, row))));
  return changed.some((one, row) => one !== end[row]) ? { end: changed } : null;
}

/** Indices of another meaning: each as the change reads it. */
function ofIndices(
  id: string,
  sentence: string,
  change: (indices: Int32Array, problem: SelectionProblem) => Int32Array | null,
): SelectionFault {
  return {
    id,
    sentence,
    apply: (given) => {
      const indices = change(given.results.indices, given.problem);
      return indices === null ? null : { ...given, results: { ...given.results, indices } };
    },
  };
}

function shifted(indices: Int32Array, by: number): Int32Array {
  return indices.map((index) => (index < 0 ? index : index + by));
}

/** Lists in the places of their neighbours along heads or batch entries, which wrap around; null for an axis of one. */
function rolledLists(
  indices: Int32Array,
  { shape: { batch, queries, heads, listed } }: SelectionProblem,
  axis: 'batch' | 'heads',
  step: number,
): Int32Array | null {
  const [inner, size] = axis === 'batch' ? [queries * heads * listed, batch] : [listed, heads];
  if (size < 2) return null;
  return indices.map((_, i) => {
    const at = Math.floor(i / inner) % size;
    return indices[i + (((at + step + size) % size) - at) * inner];
  });
}

/** A problem whose queries are those a step away, the first or last of them more than once; null for one query. */
function otherQueries(problem: SelectionProblem, step: number): Partial<SelectionProblem> | null {
  const { shape, q, weights, scores, first, end } = problem;
  const { queries } = shape;
  if (queries < 2) return null;
  const moved = (i: number, inner: number) => {
    const at = Math.floor(i / inner) % queries;
    return i + (Math.max(0, Math.min(queries - 1, at + step)) - at) * inner;
  };
  const movedTensor = (tensor: Tensor) =>
    changedTensor(tensor, (i) =>
      moved(
        i,
        tensor.shape.slice(2).reduce((a, b) => a * b, 1),
      ),
    );
  return {
    first: first.map((_, row) => first[moved(row, 1)]),
    end: end.map((_, row) => end[moved(row, 1)]),
    ...(q && { q: movedTensor(q) }),
    ...(weights && { weights: movedTensor(weights) }),
    ...(scores && { scores: movedTensor(scores) }),
  };
}

/** Lengths of tiles whose ragged end a kernel may leave out. */
const tiles = [8, 16, 32, 64, 128, 256, 512, 1024] as const;
/** Numbers of candidates that a kernel's buffers may be limited to. */
const limits = [64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536] as const;

const isLaw = (problem: SelectionProblem, ...laws: readonly SelectionProblem['law'][]) =>
  laws.some((law) => law === problem.law);

/** Scores in the order that their bits have as unsigned numbers: negative ones above all others, the smallest first. */
function unsignedOrder(scores: Tensor): Tensor {
  const largest = Number.MAX_VALUE / 4;
  const values = decodeTensor(scores);
  const data = values.map((x) =>
    x < 0 || Object.is(x, -0) ? Math.min(largest, 2 ** 600 * (1 + Math.abs(x))) : x,
  );
  return { format: 'fp64', shape: scores.shape, data };
}

const ofScores: readonly SelectionFault[] = [
  ofProblem('activation-missing', 'the products are weighted without their relu', (problem) =>
    problem.law === 'indexer' ? { activation: 'none' } : null,
  ),
  ofProblem(
    'activation-absolute',
    'the products are weighted by their magnitudes in place of their relu',
    (problem) => (problem.law === 'indexer' ? { activation: 'absolute' } : null),
  ),
  ofProblem('weights-missing', 'the weights of heads are left out', ({ weights }) =>
    weights === undefined ? null : { weights: undefined },
  ),
  ofProblem('weights-of-next-head', 'the weight of each head is that of the next', ({ weights }) =>
    withTensor('weights', neighbour(weights, 2, 1)),
  ),
  ofProblem(
    'weights-of-previous-query',
    'the weights are those of the query before',
    ({ weights }) => withTensor('weights', neighbour(weights, 1, -1)),
  ),
  ofProblem('last-head-missing', 'the last head is left out of the sum over heads', (problem) => {
    const { weights, q, shape } = problem;
    const { queryHeads } = headsOf(problem);
    if (q === undefined || queryHeads / shape.heads < 2) return null;
    const ofList = queryHeads / shape.heads;
    const kept = (head: number) => (head % ofList === ofList - 1 ? 0 : 1);
    if (weights !== undefined)
      return {
        weights: changedTensor(
          weights,
          (i) => i,
          (i) => kept(i % queryHeads),
        ),
      };
    const dim = q.shape[3];
    return {
      q: changedTensor(
        q,
        (i) => i,
        (i) => kept(Math.floor(i / dim) % queryHeads),
      ),
    };
  }),
  ofProblem(
    'first-head-alone',
    'only the first of the heads that share a list is scored',
    (problem) => {
      const { q, shape } = problem;
      const { queryHeads } = headsOf(problem);
      const ofList = queryHeads / shape.heads;
      if (q === undefined || ofList < 2) return null;
      const dim = q.shape[3];
      const kept = (head: number) => (head % ofList === 0 ? 1 : 0);
      return {
        q: changedTensor(
          q,
          (i) => i,
          (i) => kept(Math.floor(i / dim) % queryHeads),
        ),
      };
    },
  ),
  ofProblem(
    'largest-of-heads',
    'heads are joined by their largest score in place of their sum',
    (problem) =>
      isLaw(problem, 'dot', 'block-mean', 'block-bounds') && problem.reduction !== 'max'
        ? { reduction: 'max' }
        : null,
  ),
  ofProblem('key-scale-missing', 'the scales of keys are left out', ({ keyScale }) =>
    keyScale === undefined ? null : { keyScale: undefined },
  ),
  ofProblem('key-scale-of-next-key', 'the scale of each key is that of the next', ({ keyScale }) =>
    withTensor('keyScale', neighbour(keyScale, 1, 1)),
  ),
  ofProblem('query-of-previous-row', 'rows are scored with the query before', ({ q }) =>
    withTensor('q', neighbour(q, 1, -1)),
  ),
  ofProblem('query-of-next-head', 'heads are scored with the next head of Q', ({ q }) =>
    withTensor('q', neighbour(q, 2, 1)),
  ),
  ofProblem('keys-of-next-entry', 'the keys are those of the next batch entry', ({ k }) =>
    withTensor('k', neighbour(k, 0, 1)),
  ),
  ofProblem('keys-of-next-head', 'the keys are those of the next key head', ({ k }) =>
    withTensor('k', neighbour(k, 2, 1)),
  ),
  ofProblem(
    'smallest-selected',
    'the smallest scores are selected in place of the largest',
    (problem) => {
      const { law, scores, q, weights } = problem;
      if (law === 'given')
        return {
          scores: changedTensor(
            scores!,
            (i) => i,
            () => -1,
          ),
        };
      if (law === 'indexer' && weights !== undefined)
        return {
          weights: changedTensor(
            weights,
            (i) => i,
            () => -1,
          ),
        };
      return law === 'dot' || law === 'block-mean'
        ? {
            q: changedTensor(
              q!,
              (i) => i,
              () => -1,
            ),
          }
        : null;
    },
  ),
  ofProblem('magnitudes-selected', 'scores are ranked by their magnitude', ({ law, scores }) =>
    law === 'given'
      ? {
          scores: {
            format: 'fp64',
            shape: scores!.shape,
            data: decodeTensor(scores!).map(Math.abs),
          },
        }
      : null,
  ),
  ofProblem(
    'order-of-bits',
    'scores are ranked by their bits as unsigned numbers, which puts negative ones first',
    ({ law, scores }) => (law === 'given' ? { scores: unsignedOrder(scores!) } : null),
  ),
  ofProblem(
    'bounds-of-block',
    'blocks are scored by the largest bound of single dimensions in place of their mean',
    ({ law }) => (law === 'block-mean' ? { law: 'block-bounds' } : null),
  ),
  ofProblem(
    'mean-of-block',
    "blocks are scored by their keys' mean in place of their bounds",
    ({ law }) => (law === 'block-bounds' ? { law: 'block-mean' } : null),
  ),
  ofProblem(
    'forced-missing',
    'the candidates that every row lists are ranked like the others',
    ({ forced }) =>
      forced.first || forced.last ? { forced: { first: false, last: false } } : null,
  ),
  ...(['bf16', 'fp16'] as const).map((format): SelectionFault => ({
    id: `scores-in-${format}`,
    sentence: `scores are rounded to ${format} before they are ranked`,
    apply: (given) => {
      const { problem, arithmetic } = given;
      if (problem.law !== 'given')
        return arithmetic.scores === 'fp32'
          ? { ...given, arithmetic: { ...arithmetic, scores: format } }
          : null;
      return { ...given, problem: { ...problem, scores: roundedTo(problem.scores!, format) } };
    },
  })),
];

/** A tensor rounded to a format. */
function roundedTo(tensor: Tensor, format: 'bf16' | 'fp16'): Tensor {
  const data = encodeFromFloat64(formats[format], decodeTensor(tensor));
  return { format, shape: tensor.shape, data };
}

const ofPlaces: readonly SelectionFault[] = [
  ofProblem('limit-late', 'rows see one candidate beyond their own', (problem) =>
    withEnds(problem, (end) => end + 1),
  ),
  ofProblem('limit-early', 'rows do not see their newest candidate', (problem) =>
    withEnds(problem, (end) => end - 1),
  ),
  ofProblem('limit-ignored', 'rows see candidates beyond their own, up to the last', (problem) =>
    withEnds(problem, () => problem.shape.candidates),
  ),
  ofProblem(
    'limit-top-left',
    'the causal limit is aligned with the first key and not with the last',
    (problem) =>
      withEnds(problem, (end, row) =>
        Math.min(end, Math.floor((row % problem.shape.queries) / problem.blockSize) + 1),
      ),
  ),
  ...tiles.map((tile) =>
    ofProblem(
      `tail-missing-${tile}`,
      `the candidates behind the last whole tile of ${tile} are not seen`,
      (problem) => withEnds(problem, (end) => end - (end % tile)),
    ),
  ),
  ...limits.map((limit) =>
    ofProblem(`first-${limit}-alone`, `only the first ${limit} candidates are seen`, (problem) =>
      withEnds(problem, (end) => Math.min(end, limit)),
    ),
  ),
  ofIndices('index-one-late', 'each index is one too large', (indices) => shifted(indices, -1)),
  ofIndices('index-one-early', 'each index is one too small', (indices) => shifted(indices, 1)),
  ofIndices(
    'index-from-first',
    'indices are counted from the first candidate that a row sees',
    (indices, problem) => {
      const { first, shape } = problem;
      if (first.every((one) => one === 0)) return null;
      const ofRow = shape.heads * shape.listed;
      return indices.map((index, i) => (index < 0 ? index : index + first[Math.floor(i / ofRow)]));
    },
  ),
  ofProblem(
    'list-of-previous-query',
    'the list is that of the query before: it is a step old',
    (problem) => otherQueries(problem, -1),
  ),
  ofProblem('list-of-next-query', 'the list is that of the query after', (problem) =>
    otherQueries(problem, 1),
  ),
  ...(['batch', 'heads'] as const).flatMap((axis) =>
    ([1, -1] as const).map((step) => {
      const [side, of] = [
        step === 1 ? 'next' : 'previous',
        axis === 'batch' ? 'batch entry' : 'head',
      ];
      return ofIndices(
        `list-of-${side}-${axis === 'batch' ? 'entry' : 'head'}`,
        `the list is that of the ${side} ${of}`,
        (indices, problem) => rolledLists(indices, problem, axis, -step),
      );
    }),
  ),
];

/** Lists that are shorter or longer than they have to be, as if fewer or more were asked for: read from the lists themselves. */
function otherCount(
  word: 'fewer' | 'more',
  isOther: (most: number, count: number) => boolean,
): SelectionFault {
  return {
    id: `${word}-selected`,
    sentence: `${word} candidates are selected than were asked for`,
    apply: (given) => {
      const { problem, results } = given;
      const { listed } = problem.shape;
      let most = 0;
      for (let start = 0; start < results.indices.length; start += listed) {
        const row = results.indices.subarray(start, start + listed);
        most = Math.max(
          most,
          row.reduce((sum, index) => sum + (index >= 0 ? 1 : 0), 0),
        );
      }
      return most === 0 || !isOther(most, problem.count)
        ? null
        : { ...given, problem: { ...problem, count: most } };
    },
  };
}

const otherCounts = [
  otherCount('fewer', (most, count) => most < count),
  otherCount('more', (most, count) => most > count),
];

/** The mistakes that a failed selection is compared with, in the order in which they are named. */
export const selectionFaults: readonly SelectionFault[] = [
  ...ofPlaces,
  ...ofScores,
  ...otherCounts,
];
