import {
  decodeTensor,
  decodeToFloat64,
  encodeFromFloat64,
  formats,
  smallestNormal,
  unitRoundoff,
  type FormatName,
} from '../../src/formats/index.js';
import {
  clipRanges,
  countKeys,
  problemMask,
  type KeyRange,
  type Problem,
  type ProblemShape,
  type Tensor,
} from '../../src/problem/index.js';
import { WorkingMemories } from '../../src/reuse.js';
import { rowFeatures } from '../row-features.js';
import { withYardstickMemory, type MemoryPart, type YardstickMemory } from './yardstick-memory.js';

/** Queries whose scores are held at once, at most. */
const tileRows = 64;

/** Numbers that are held at once: scores of some rows, or a kv head's keys or values decoded, 16 MiB each. */
const heldNumbers = 2 ** 21;

/** Keys of a row that are multiplied at once, by one row after the other: those of 64 rows are in a cache. */
const stretchKeys = 64;

/** Blocks of so many elements are remembered for other queries: 8 MiB in fp64. */
const mostRemembered = 2 ** 20;

/** Rows [first, first + rows) of a tensor with rows of `dim` elements, decoded. */
function decodeRows(tensor: Tensor, first: number, rows: number, dim: number): Float64Array {
  return decodeTensor(tensor, first * dim, (first + rows) * dim);
}

/** The smallest normal number of a format with 16 bits, the ulp of 1 and the largest number; null for other formats. */
function shortFormat(name: FormatName) {
  if (name !== 'bf16' && name !== 'fp16') return null;
  const format = formats[name];
  return {
    smallestNormal: smallestNormal(format),
    ulpOfOne: 2 * unitRoundoff(format),
    maxFinite: format.maxFinite,
  };
}

function multiply(values: Float64Array, factor: number): void {
  for (let i = 0; i < values.length; i++) values[i] *= factor;
}

function divide(values: Float64Array, divisor: number): void {
  for (let i = 0; i < values.length; i++) values[i] /= divisor;
}

/** Number of `count` rows of `width` numbers that are held at once, one at least. */
function blockOf(count: number, width: number): number {
  return Math.max(1, Math.min(count, Math.floor(heldNumbers / Math.max(width, 1))));
}

/**
 * A function that fills a part of a memory with a block of rows, unless it is there already, and returns the block's
 * address.
 */
function remembered(part: MemoryPart, fill: (first: number, count: number) => void) {
  let known = -1;
  return (first: number, count: number): number => {
    if (known !== first) fill(first, count);
    known = first;
    return part.address;
  };
}

/** Scores of a row to its weights, e^(score − largest) / Σ e^(score − largest), in place; the sink is in the sum. */
function softmax(scores: Float64Array, sink: number): void {
  let largest = sink;
  for (let j = 0; j < scores.length; j++) if (scores[j] > largest) largest = scores[j];
  let total = sink === -Infinity ? 0 : Math.exp(sink - largest);
  for (let j = 0; j < scores.length; j++) {
    scores[j] = Math.exp(scores[j] - largest);
    total += scores[j];
  }
  divide(scores, total);
}

/**
 * The yardstick of FlashAttention's tests: attention in the input format, as they compute it (`attention_ref` without upcast and with reordered operations):
 * every tensor is rounded to the format of Q, to nearest even: K·scale, the scores, the softcapped scores, those with a bias, the weights, the output; sums are
 * in fp64. A sink is in the sum of a row; dropout multiplies the weights by 0 or 1/(1 − p), which are not rounded again. Returns the output's values, [batch,
 * heads, queries, vDim].
 * @param memories the memories of its loops
 */
export function yardstickAttention(
  problem: Problem,
  shape: ProblemShape,
  memories: WorkingMemories = new WorkingMemories(),
): Float64Array {
  const { keys, qkDim, vDim } = shape;
  const blockKeys = blockOf(keys, Math.max(qkDim, vDim));
  const rows = blockOf(tileRows, keys);
  const lengths = {
    keys: blockKeys * qkDim,
    values: blockKeys * vDim,
    queries: rows * qkDim,
    scores: rows * keys,
    tile: rows * vDim,
    weights: keys + 1,
  };
  return withYardstickMemory(memories, lengths, (memory) =>
    attend(problem, shape, { blockKeys, blockRows: rows, memories }, memory),
  );
}

/** Numbers of keys that are decoded at once, and of rows whose scores are held. */
interface Blocks {
  readonly blockKeys: number;
  readonly blockRows: number;
  /** Memories that remember what was decoded. */
  readonly memories: WorkingMemories;
}

/** Rows of a tensor. */
interface Rows {
  readonly first: number;
  readonly count: number;
  readonly dim: number;
}

/** The yardstick, in a memory. */
function attend(
  problem: Problem,
  shape: ProblemShape,
  { blockKeys, blockRows, memories }: Blocks,
  memory: YardstickMemory,
): Float64Array {
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const { kernels } = memory;
  const { softcap } = problem;
  const format = formats[problem.q.format];
  const short = shortFormat(problem.q.format);
  const formatAt = short === null ? 0 : memory.format.write(short);
  const out = new Float64Array(batch * heads * queries * vDim);
  /** Rounds numbers of the memory. */
  const roundAll = (values: Float64Array): void => {
    if (short !== null) kernels.roundNumbers(values.byteOffset, values.length, formatAt);
    else if (format === formats.fp32) kernels.roundToFloat32(values.byteOffset, values.length);
    else decodeToFloat64(encodeFromFloat64(format, values), format, values);
  };
  /** What `make` returns, or has returned for the same rows of a tensor. */
  const once = (kind: string, tensor: Tensor, rows: Rows, make: () => Float64Array) => {
    const { first, count, dim } = rows;
    if (tensor.scales !== undefined || count * dim > mostRemembered) return make();
    const data = tensor.data.subarray(first * dim, (first + count) * dim);
    return memories.remember(`yardstick ${kind} ${tensor.format}`, [data], make);
  };
  const keyBlock = remembered(memory.keys, (first, count) => {
    const k = memory.keys.view.subarray(0, count * qkDim);
    const kind = `keys ${problem.q.format} ${problem.scale}`;
    const made = once(kind, problem.k, { first, count, dim: qkDim }, () => {
      k.set(decodeRows(problem.k, first, count, qkDim));
      multiply(k, problem.scale);
      roundAll(k);
      return k.slice();
    });
    k.set(made);
  });
  const valueBlock = remembered(memory.values, (first, count) =>
    memory.values.view.set(
      once('values', problem.v, { first, count, dim: vDim }, () =>
        decodeRows(problem.v, first, count, vDim),
      ),
    ),
  );
  const mask = problemMask(problem, shape);
  const featuresOf = rowFeatures(problem, shape);
  const isAdded = problem.bias !== undefined || problem.alibiSlopes !== undefined;
  const share = 1 - (problem.dropout?.probability ?? 0);
  /**
   * Visits the visible keys of some rows in one block of keys after the other, and within it by stretches of at most 64 keys,
   * all but the last of a range a multiple of 4: each of `count` keys begins at key `from` of the block, and is number `at` and
   * following among the row's visible keys.
   */
  const forEachStretch = (
    ranges: readonly (readonly KeyRange[])[],
    visit: (
      block: { readonly first: number; readonly count: number },
      row: number,
      at: number,
      stretch: { readonly from: number; readonly count: number },
    ) => void,
  ) => {
    const met = ranges.map(() => 0);
    for (let first = 0; first < keys; first += blockKeys) {
      const block = { first, count: Math.min(blockKeys, keys - first) };
      const clipped = ranges.map((ofRow) => clipRanges(ofRow, first, first + block.count));
      const most = clipped.reduce((count, ofRow) => Math.max(count, ofRow.length), 0);
      for (let index = 0; index < most; index++) {
        const ofRows = clipped.map((ofRow) => ofRow[index] ?? { begin: 0, end: 0 });
        const longest = ofRows.reduce((keys, { begin, end }) => Math.max(keys, end - begin), 0);
        for (let done = 0; done < longest; done += stretchKeys)
          ofRows.forEach(({ begin, end }, row) => {
            const count = Math.min(stretchKeys, end - begin - done);
            if (count <= 0) return;
            visit(block, row, met[row], { from: begin + done - first, count });
            met[row] += count;
          });
      }
    }
  };
  /** The products of the rows of Q with the keys that they see. */
  const score = (
    scores: readonly Float64Array[],
    ranges: readonly (readonly KeyRange[])[],
    firstKey: number,
  ) =>
    forEachStretch(ranges, ({ first, count }, row, at, stretch) => {
      const k = keyBlock(firstKey + first, count) + 8 * qkDim * stretch.from;
      const q = memory.queries.address + 8 * qkDim * row;
      kernels.scoreRow(q, k, scores[row].byteOffset + 8 * at, stretch.count, qkDim);
    });
  /** The sums of the values that rows see, times their weights, into the tile. */
  const addValues = (
    weights: readonly Float64Array[],
    ranges: readonly (readonly KeyRange[])[],
    firstKey: number,
  ) =>
    forEachStretch(ranges, ({ first, count }, row, at, stretch) => {
      const v = valueBlock(firstKey + first, count) + 8 * vDim * stretch.from;
      const ofRow = memory.tile.address + 8 * vDim * row;
      const ofKeys = weights[row].byteOffset + 8 * at;
      kernels.addWeightedRows(ofRow, ofKeys, v, stretch.count, vDim);
    });
  const cap = (scores: Float64Array, limit: number): void => {
    divide(scores, limit);
    roundAll(scores);
    for (let j = 0; j < scores.length; j++) scores[j] = Math.tanh(scores[j]);
    roundAll(scores);
    multiply(scores, limit);
    roundAll(scores);
  };
  for (let head = 0; head < batch * heads; head++) {
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    for (let first = 0, rows = 0; first < queries; first += rows) {
      rows = Math.min(blockRows, queries - first);
      const row = head * queries + first;
      memory.queries.view.set(decodeRows(problem.q, row, rows, qkDim));
      const ranges = Array.from({ length: rows }, (_, i) => mask.ranges(head, first + i));
      const counts = ranges.map(countKeys);
      // The visible scores of one row after the other.
      const seen = counts.reduce((sum, count) => sum + count, 0);
      const scores = memory.scores.view.subarray(0, seen);
      let at = 0;
      const ofRows = counts.map((count) => scores.subarray(at, (at += count)));
      score(ofRows, ranges, kv * keys);
      roundAll(scores);
      if (softcap !== null) cap(scores, softcap);
      const features = ofRows.map((_, i) => featuresOf(head, first + i));
      if (isAdded) {
        ofRows.forEach((ofRow, i) => features[i].addend?.forEach((x, j) => (ofRow[j] += x)));
        roundAll(scores);
      }
      ofRows.forEach((ofRow, i) => {
        const { sink } = features[i];
        const weights = memory.weights.address;
        const { byteOffset, length } = ofRow;
        const isDone =
          short !== null &&
          kernels.roundedSoftmax(byteOffset, weights, length, sink, formatAt) !== 0;
        if (isDone) return;
        softmax(ofRow, sink);
        roundAll(ofRow);
      });
      ofRows.forEach((ofRow, i) => features[i].kept?.forEach((x, j) => (ofRow[j] *= x / share)));
      const tile = memory.tile.view.subarray(0, rows * vDim).fill(0);
      addValues(ofRows, ranges, kv * keys);
      roundAll(tile);
      out.set(tile, row * vDim);
    }
  }
  return out;
}
