import { decodeTensor } from '../../src/formats/index.js';
import { headsOf, type SelectionProblem } from './selection-problem.js';

/** Unit roundoff of fp64. */
const u = 2 ** -53;

/** Scores of a row, with what their errors are made of. */
export interface ScoreRow {
  /** Exact scores, each within its radius; NaN where an input is. */
  readonly values: Float64Array;
  readonly radius: Float64Array;
  /** Σ over all products of their magnitudes, weights and scales included: what a kernel's roundings of sums are relative to. */
  readonly magnitude: Float64Array;
  /** The same with, of each q·k, its largest product in place of the sum: what an alignment to the largest term is relative to. */
  readonly largest: Float64Array;
  /** The same with the mean of |k| in place of a mean of keys: what roundings of sums of keys are relative to; 0 without means. */
  readonly pooled: Float64Array;
}

/** Computes the scores of rows; arrays are those of the scorer, and the next row overwrites them. */
export type Scorer = (entry: number, query: number, head: number) => ScoreRow;

/** Arrays of a row. */
function rowOf(length: number): ScoreRow {
  const array = () => new Float64Array(length);
  return {
    values: array(),
    radius: array(),
    magnitude: array(),
    largest: array(),
    pooled: array(),
  };
}

/** The keys of one batch entry, or what stands for blocks of them. */
interface Blocks {
  /** [candidates, key heads, dim]: keys, or means of blocks. */
  readonly keys: Float64Array;
  /** The greatest of each, of `block-bounds`; else the keys. */
  readonly greatest: Float64Array;
  /** The means of |k|, of `block-mean`; null else. */
  readonly pooled: Float64Array | null;
  /** Error of a mean relative to the mean of |k|. */
  readonly relativeError: number;
}

/** Candidates of a batch entry by the law: keys as they are, means of blocks, or their least and greatest. */
function blocksOf({ law, k, blockSize, shape }: SelectionProblem, entry: number): Blocks {
  const [, keys, keyHeads, dim] = k!.shape;
  const width = keyHeads * dim;
  const all = decodeTensor(k!, entry * keys * width, (entry + 1) * keys * width);
  if (law !== 'block-mean' && law !== 'block-bounds')
    return { keys: all, greatest: all, relativeError: 0, pooled: null };
  const { candidates } = shape;
  const length = candidates * width;
  const least = new Float64Array(length).fill(law === 'block-mean' ? 0 : Infinity);
  const greatest = new Float64Array(length).fill(law === 'block-mean' ? 0 : -Infinity);
  for (let key = 0; key < keys; key++) {
    const at = Math.floor(key / blockSize) * width;
    for (let i = 0; i < width; i++) {
      const x = all[key * width + i];
      if (law === 'block-mean') {
        least[at + i] += x;
        greatest[at + i] += Math.abs(x);
      } else {
        least[at + i] = Math.min(least[at + i], x);
        greatest[at + i] = Math.max(greatest[at + i], x);
      }
    }
  }
  if (law === 'block-bounds') return { keys: least, greatest, relativeError: 0, pooled: null };
  for (let block = 0; block < candidates; block++) {
    const size = Math.min(blockSize, keys - block * blockSize);
    for (let i = block * width; i < (block + 1) * width; i++) {
      least[i] /= size;
      greatest[i] /= size;
    }
  }
  return { keys: least, greatest: least, relativeError: (blockSize + 1) * u, pooled: greatest };
}

/** The products of one query head and one candidate, summed. */
interface Dot {
  value: number;
  radius: number;
  magnitude: number;
  largest: number;
  pooled: number;
}

/** Σ q·k over a head's dimensions, or Quest's Σ max(q·least, q·greatest), with (dim + 1) roundings of fp64 and those of the means. */
function dotOf(
  q: Float64Array,
  { keys, greatest, pooled, relativeError }: Blocks,
  at: number,
  into: Dot,
): void {
  const dim = q.length;
  let value = 0;
  let sum = 0;
  let largest = 0;
  let means = 0;
  for (let i = 0; i < dim; i++) {
    const a = q[i] * keys[at + i];
    const b = greatest === keys ? a : q[i] * greatest[at + i];
    const product = a > b || a !== a ? a : b;
    value += product;
    const size = Math.abs(product);
    sum += size;
    if (size > largest) largest = size;
    if (pooled !== null) means += Math.abs(q[i]) * pooled[at + i];
  }
  into.value = value;
  into.magnitude = sum;
  into.largest = largest;
  into.pooled = means;
  into.radius = (sum * (dim + 1) * u + means * relativeError) * (1 + 2 ** -20);
}

/** What becomes of a product before its weight; each is 1-Lipschitz, so that the radius stays. */
const activations = {
  relu: (x: number) => (x > 0 ? x : x !== x ? x : 0),
  none: (x: number) => x,
  absolute: Math.abs,
} as const;

/** Scores that are an input, exact. */
function givenScorer({ scores, shape }: SelectionProblem): Scorer {
  const { queries, heads, candidates } = shape;
  const row = rowOf(candidates);
  return (entry, query, head) => {
    const at = ((entry * queries + query) * heads + head) * candidates;
    decodeTensor(scores!, at, at + candidates, row.values);
    return row;
  };
}

/** Joins the products of another head that shares a list, weighted: their sum, or the largest of them. */
function join(into: Dot, dot: Dot, term: number, factor: number, isMax: boolean): void {
  const size = Math.abs(factor);
  if (isMax) {
    into.value = term > into.value || term !== term ? term : into.value;
    into.radius = Math.max(into.radius, size * dot.radius);
    into.magnitude = Math.max(into.magnitude, size * dot.magnitude);
    into.largest = Math.max(into.largest, size * dot.largest);
    into.pooled = Math.max(into.pooled, size * dot.pooled);
    return;
  }
  into.value += term;
  into.radius += size * dot.radius;
  into.magnitude += size * dot.magnitude;
  into.largest += size * dot.largest;
  into.pooled += size * dot.pooled;
}

/** Writes a candidate's score, times its scale: beside the products' own errors a rounding of each weighted term, each sum, the scale. */
function store(row: ScoreRow, j: number, all: Dot, scale: number, heads: number): void {
  const size = Math.abs(scale);
  row.values[j] = all.value * scale;
  row.radius[j] = size * (all.radius + (heads + 3) * u * all.magnitude) * (1 + 2 ** -20);
  row.magnitude[j] = size * all.magnitude;
  row.largest[j] = size * all.largest;
  row.pooled[j] = size * all.pooled;
}

const emptyDot = (value: number): Dot => ({
  value,
  radius: 0,
  magnitude: 0,
  largest: 0,
  pooled: 0,
});

/**
 * The exact scores of a selection, a row at a time, each with a proven radius: products are rounded once in fp64, and sums of n terms
 * n − 1 times, each by at most 2^-53 of the sum of magnitudes. Memory: the keys of one batch entry in fp64.
 */
export function selectionScorer(problem: SelectionProblem): Scorer {
  const { law, q, weights, keyScale, reduction, activation, shape } = problem;
  if (law === 'given') return givenScorer(problem);
  const { queries, heads, keys, candidates } = shape;
  const { queryHeads, keyHeads, dim } = headsOf(problem);
  const ofList = queryHeads / heads;
  const ofKey = queryHeads / keyHeads;
  const activate = activations[law === 'indexer' ? activation : 'none'];
  const isMax = reduction === 'max' && law !== 'indexer';
  const share = reduction === 'mean' && law !== 'indexer' ? 1 / ofList : 1;
  const row = rowOf(candidates);
  const dot = emptyDot(0);
  let ofEntry: {
    readonly entry: number;
    readonly blocks: Blocks;
    readonly scales: Float64Array | null;
  } | null = null;
  return (entry, query, head) => {
    if (ofEntry?.entry !== entry) {
      const scales =
        keyScale === undefined ? null : decodeTensor(keyScale, entry * keys, (entry + 1) * keys);
      ofEntry = { entry, blocks: blocksOf(problem, entry), scales };
    }
    const { blocks, scales } = ofEntry;
    const first = (entry * queries + query) * queryHeads + head * ofList;
    const ofHeads = Array.from({ length: ofList }, (_, h) =>
      decodeTensor(q!, (first + h) * dim, (first + h + 1) * dim),
    );
    const factors =
      weights === undefined
        ? new Float64Array(ofList).fill(1)
        : decodeTensor(weights, first, first + ofList);
    for (let j = 0; j < candidates; j++) {
      const all = emptyDot(isMax ? -Infinity : 0);
      for (let h = 0; h < ofList; h++) {
        const keyHead = Math.floor((head * ofList + h) / ofKey);
        dotOf(ofHeads[h], blocks, (j * keyHeads + keyHead) * dim, dot);
        join(all, dot, activate(dot.value) * factors[h], factors[h], isMax);
      }
      store(row, j, all, (scales === null ? 1 : scales[j]) * share, ofList);
    }
    return row;
  };
}
