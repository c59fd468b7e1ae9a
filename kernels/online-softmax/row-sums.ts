import { addFloat32, fusedMultiplyAddFloat32, multiplyFloat32 } from '../../src/arith/index.js';

/** Sums fp32 numbers by a butterfly: each with the one at half the distance, then at a quarter, and so on. */
function butterflySum(values: readonly number[]): number {
  const half = values.length / 2;
  if (half < 1) return values[0];
  return butterflySum(values.slice(0, half).map((value, i) => addFloat32(value, values[i + half])));
}

/**
 * Sums fp32 numbers that are dealt in turn to threads, a power of two of them: each adds its own one after the other, then a butterfly adds the
 * threads' sums.
 */
export function threadedSum(values: readonly number[], threads: number): number {
  return butterflySum(
    Array.from({ length: threads }, (_, thread) =>
      values.filter((_, i) => i % threads === thread).reduce((a, b) => addFloat32(a, b), 0),
    ),
  );
}

/** fp32 summation of a row's weights over the blocks of keys. */
interface RowSumLaw {
  /** The columns of a block that each of a row's threads has, in the order in which it adds them. */
  readonly columnsOfThreads: (blockKeys: number) => readonly (readonly number[])[];
  /** Initial value of a thread's sum in a block, from its sum, α and its first weight. */
  readonly start: (sum: number, alpha: number, firstWeight: number) => number;
  /** The thread's sum from that value and its weights; null where the tensor cores add them, rounded as for P·V. */
  readonly sum: ((start: number, weights: readonly number[]) => number) | null;
  /** The row sum from those of its threads. */
  readonly total: (sums: readonly number[]) => number;
  /** The most additions that one weight of a block of `blockKeys` keys goes through in the block. */
  readonly additions: (blockKeys: number) => number;
  /** The additions of `total` that a thread's sum goes through. */
  readonly totalAdditions: number;
}

const packedLanes = 8;
const quadThreads = 4;
const quadColumns = 8;

/** Four packed accumulators over pairs of weights, then a tree; the first begins with `start` and, in its other half, `other`. */
function packedSum(start: number, weights: readonly number[], other = 0): number {
  const lanes = weights.slice(0, packedLanes);
  lanes[0] = addFloat32(start, weights[0]);
  lanes[1] = addFloat32(other, weights[1]);
  for (let j = packedLanes; j < weights.length; j++)
    lanes[j % packedLanes] = addFloat32(lanes[j % packedLanes], weights[j]);
  const [x, y] = [0, 1].map((lane) =>
    addFloat32(
      addFloat32(lanes[lane], lanes[2 + lane]),
      addFloat32(lanes[4 + lane], lanes[6 + lane]),
    ),
  );
  return addFloat32(x, y);
}

/** One weight after the other. */
function sequentialSum(start: number, weights: readonly number[]): number {
  return weights.reduce((sum, weight) => addFloat32(sum, weight), start);
}

/** The same where the start includes the first weight. */
function restSum(start: number, [, ...weights]: readonly number[]): number {
  return sequentialSum(start, weights);
}

/**
 * Columns of the threads of a quad: in every eight columns thread t has 2t and 2t + 1, as in an
 * accumulator of mma.sync.
 */
function columnsOfQuad(columns: readonly number[]): number[][] {
  return Array.from({ length: quadThreads }, (_, thread) =>
    columns.filter((column) => Math.floor((column % quadColumns) / 2) === thread),
  );
}

/** (0 + 2) + (1 + 3): butterfly shuffles at distances 2 and 1. */
function quadTotal([a, b, c, d]: readonly number[]): number {
  return addFloat32(addFloat32(a, c), addFloat32(b, d));
}

const ascending = (count: number): number[] => Array.from({ length: count }, (_, j) => j);

/** Warps that share the keys of a block. */
const keyWarps = 4;
const mmaColumns = 16;

/** The columns of a block that each of four warps has: 16 in turn, as its instructions read them. */
export function warpColumns(blockKeys: number): number[][] {
  return Array.from({ length: keyWarps }, (_, warp) =>
    ascending(blockKeys).filter((j) => Math.floor(j / mmaColumns) % keyWarps === warp),
  );
}

/**
 * Ways to keep row sums. `packed`: one thread has a row; within a block four packed accumulators take pairs of weights with a stride of eight, and their tree
 * is the row sum. `packed-halves`: the same, but both halves of the first begin with half of the earlier sum. `quad`: four threads have a row, each adds its
 * own weights one after the other, the first fused with the product by α, as a compiler contracts them, and their sums meet once, at the end. `quads-of-warps`:
 * four warps have 16 columns of a row in turn, a quad each; quads and then warps meet after every block. `tensor-core`: the row sum is one more column of P·V,
 * whose values are ones.
 */
export const rowSumLaws = {
  packed: {
    columnsOfThreads: (blockKeys) => [ascending(blockKeys)],
    start: (sum, alpha) => multiplyFloat32(sum, alpha),
    sum: (start, weights) => packedSum(start, weights),
    total: ([sum]) => sum,
    additions: (blockKeys) => blockKeys / packedLanes + 3,
    totalAdditions: 0,
  },
  'packed-halves': {
    columnsOfThreads: (blockKeys) => [ascending(blockKeys)],
    start: (sum, alpha) => multiplyFloat32(sum, alpha / 2),
    sum: (start, weights) => packedSum(start, weights, start),
    total: ([sum]) => sum,
    additions: (blockKeys) => blockKeys / packedLanes + 3,
    totalAdditions: 0,
  },
  quad: {
    columnsOfThreads: (blockKeys) => columnsOfQuad(ascending(blockKeys)),
    start: (sum, alpha, firstWeight) => fusedMultiplyAddFloat32(sum, alpha, firstWeight),
    sum: restSum,
    total: quadTotal,
    additions: (blockKeys) => blockKeys / quadThreads,
    totalAdditions: 2,
  },
  'quads-of-warps': {
    columnsOfThreads: (blockKeys) =>
      warpColumns(blockKeys).flatMap((columns) => columnsOfQuad(columns)),
    start: () => 0,
    sum: sequentialSum,
    total: (sums) => {
      const ofWarp = (warp: number): number =>
        quadTotal(sums.slice(warp * quadThreads, (warp + 1) * quadThreads));
      return quadTotal([0, 1, 2, 3].map(ofWarp));
    },
    additions: (blockKeys) => blockKeys / (quadThreads * keyWarps),
    totalAdditions: 4,
  },
  'tensor-core': {
    columnsOfThreads: (blockKeys) => [ascending(blockKeys)],
    start: (sum, alpha) => multiplyFloat32(sum, alpha),
    sum: null,
    total: ([sum]) => sum,
    additions: (blockKeys) => blockKeys,
    totalAdditions: 0,
  },
} as const satisfies Readonly<Record<string, RowSumLaw>>;

/** A way to keep row sums. */
export type RowSumName = keyof typeof rowSumLaws;
