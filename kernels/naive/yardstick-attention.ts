import {
  countKeys,
  problemMask,
  type KeyRange,
  type Problem,
  type ProblemShape,
} from '../../src/problem/index.js';
import { WorkingMemories } from '../../src/reuse.js';
import { rowFeatures } from '../row-features.js';
import { forEachStretch } from './key-stretches.js';
import { withYardstickMemory, type YardstickMemory } from './yardstick-memory.js';
import {
  decodedBlocks,
  decodeRows,
  memoryRounding,
  multiply,
  type DecodedBlocks,
  type MemoryRounding,
} from './yardstick-operands.js';

/** Queries whose scores are held at once, at most. */
const tileRows = 64;

/** Numbers that are held at once: scores of some rows, or a kv head's keys or values decoded, 16 MiB each. */
const heldNumbers = 2 ** 21;

function divide(values: Float64Array, divisor: number): void {
  for (let i = 0; i < values.length; i++) values[i] /= divisor;
}

/** Numbers that are decoded at once of keys or values that are not held as a whole: 512 KiB, which a cache holds. */
const streamedNumbers = 2 ** 16;

/** Keys that are decoded at once, of so many numbers each: all, or so many that they are used while a cache has them. */
function keysOfBlock(keys: number, width: number): number {
  if (keys * width <= heldNumbers) return Math.max(1, keys);
  // Stretches of 64 keys that no block interrupts.
  return Math.max(64, Math.floor(streamedNumbers / width / 64) * 64);
}

/** Number of `count` rows of `width` numbers that are held at once, one at least. */
function blockOf(count: number, width: number): number {
  return Math.max(1, Math.min(count, Math.floor(heldNumbers / Math.max(width, 1))));
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
  const blockKeys = keysOfBlock(keys, Math.max(qkDim, vDim));
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

/** Rows whose scores are held at once, and the ranges of keys that each of them sees. */
interface HeldRows {
  /** Head of [batch · heads], and its first query here. */
  readonly head: number;
  readonly first: number;
  /** Index of the first key of their kv head among all keys. */
  readonly firstKey: number;
  readonly ranges: readonly (readonly KeyRange[])[];
}

/** The yardstick of some rows at a time, in a memory. */
class RowYardstick {
  readonly #problem: Problem;
  readonly #shape: ProblemShape;
  readonly #blockKeys: number;
  readonly #memory: YardstickMemory;
  readonly #rounding: MemoryRounding;
  readonly #blocks: DecodedBlocks;
  readonly #featuresOf: ReturnType<typeof rowFeatures>;

  constructor(
    problem: Problem,
    shape: ProblemShape,
    { blockKeys, memories }: Blocks,
    memory: YardstickMemory,
  ) {
    this.#problem = problem;
    this.#shape = shape;
    this.#blockKeys = blockKeys;
    this.#memory = memory;
    this.#rounding = memoryRounding(problem.q.format, memory);
    this.#blocks = decodedBlocks(problem, shape, memory, memories, this.#rounding);
    this.#featuresOf = rowFeatures(problem, shape);
  }

  /** The outputs of the rows, in the memory. */
  outputs(held: HeldRows): Float64Array {
    const { queries, qkDim, vDim } = this.#shape;
    const { head, first, ranges } = held;
    const { q } = this.#problem;
    const memory = this.#memory;
    memory.queries.view.set(decodeRows(q, head * queries + first, ranges.length, qkDim));
    const counts = ranges.map(countKeys);
    // The visible scores of one row after the other.
    const seen = counts.reduce((sum, count) => sum + count, 0);
    const scores = memory.scores.view.subarray(0, seen);
    let at = 0;
    const ofRows = counts.map((count) => scores.subarray(at, (at += count)));
    this.#score(ofRows, held);
    this.#toWeights(scores, ofRows, held);
    const tile = memory.tile.view.subarray(0, ranges.length * vDim).fill(0);
    this.#addValues(ofRows, held);
    this.#rounding.round(tile);
    return tile;
  }

  /** The products of the rows of Q with the keys that they see. */
  #score(scores: readonly Float64Array[], { ranges, firstKey }: HeldRows): void {
    const { keys, qkDim } = this.#shape;
    const { kernels, queries } = this.#memory;
    forEachStretch(ranges, keys, this.#blockKeys, ({ first, count, row, at, from, keys }) => {
      const k = this.#blocks.keys(firstKey + first, count) + 8 * qkDim * from;
      const q = queries.address + 8 * qkDim * row;
      kernels.scoreRow(q, k, scores[row].byteOffset + 8 * at, keys, qkDim);
    });
  }

  /** The sums of the values that rows see, times their weights, into the tile. */
  #addValues(weights: readonly Float64Array[], { ranges, firstKey }: HeldRows): void {
    const { keys, vDim } = this.#shape;
    const { kernels, tile } = this.#memory;
    forEachStretch(ranges, keys, this.#blockKeys, ({ first, count, row, at, from, keys }) => {
      const v = this.#blocks.values(firstKey + first, count) + 8 * vDim * from;
      const ofRow = tile.address + 8 * vDim * row;
      const ofKeys = weights[row].byteOffset + 8 * at;
      kernels.addWeightedRows(ofRow, ofKeys, v, keys, vDim);
    });
  }

  /** Products to weights, in place. */
  #toWeights(
    scores: Float64Array,
    ofRows: readonly Float64Array[],
    { head, first }: HeldRows,
  ): void {
    const { softcap, bias, alibiSlopes, dropout } = this.#problem;
    const { round } = this.#rounding;
    round(scores);
    if (softcap !== null) this.#cap(scores, softcap);
    const features = ofRows.map((_, i) => this.#featuresOf(head, first + i));
    if (bias !== undefined || alibiSlopes !== undefined) {
      ofRows.forEach((ofRow, i) => features[i].addend?.forEach((x, j) => (ofRow[j] += x)));
      round(scores);
    }
    ofRows.forEach((ofRow, i) => this.#normalise(ofRow, features[i].sink));
    const share = 1 - (dropout?.probability ?? 0);
    ofRows.forEach((ofRow, i) => features[i].kept?.forEach((x, j) => (ofRow[j] *= x / share)));
  }

  #cap(scores: Float64Array, limit: number): void {
    const { round } = this.#rounding;
    divide(scores, limit);
    round(scores);
    for (let j = 0; j < scores.length; j++) scores[j] = Math.tanh(scores[j]);
    round(scores);
    multiply(scores, limit);
    round(scores);
  }

  /** Scores of a row to its weights, rounded. */
  #normalise(ofRow: Float64Array, sink: number): void {
    const { kernels, weights } = this.#memory;
    const { shortFormat, round } = this.#rounding;
    const { byteOffset, length } = ofRow;
    const isDone =
      shortFormat !== null &&
      kernels.roundedSoftmax(byteOffset, weights.address, length, sink, shortFormat) !== 0;
    if (isDone) return;
    softmax(ofRow, sink);
    round(ofRow);
  }
}

/** The yardstick, in a memory. */
function attend(
  problem: Problem,
  shape: ProblemShape,
  blocks: Blocks,
  memory: YardstickMemory,
): Float64Array {
  const { batch, heads, kvHeads, groupSize, queries, keys, vDim } = shape;
  const out = new Float64Array(batch * heads * queries * vDim);
  const yardstick = new RowYardstick(problem, shape, blocks, memory);
  const mask = problemMask(problem, shape);
  for (let head = 0; head < batch * heads; head++) {
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    for (let first = 0; first < queries; first += blocks.blockRows) {
      const rows = Math.min(blocks.blockRows, queries - first);
      const ranges = Array.from({ length: rows }, (_, i) => mask.ranges(head, first + i));
      const tile = yardstick.outputs({ head, first, firstKey: kv * keys, ranges });
      out.set(tile, (head * queries + first) * vDim);
    }
  }
  return out;
}
