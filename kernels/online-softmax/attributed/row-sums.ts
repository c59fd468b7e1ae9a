import { fusedMultiplyAddFloat32 } from '../../../src/arith/index.js';
import type { Recipe } from '../recipe.js';
import { rowSumLaws, type RowSumName } from '../row-sums.js';
import { emulatedRescale, type RunningMaximum } from './running-maximum.js';
import type { EmulatedTechniques } from '../../techniques.js';

/** The weights of a tile, and the fp32 numbers nearest to them. */
export interface SummedWeights {
  readonly weights: Float64Array;
  readonly nearest: Float32Array;
}

const lanes = 8;

/** Difference of x from the fp32 number nearest to it; 0 for numbers beyond fp32, where the kernel has ∞. */
function excess(x: number, nearest: number): number {
  return Number.isFinite(nearest) ? x - nearest : 0;
}

/** start + Σ p over the weights [first, end), in fp64. */
function exactRowSum(
  start: number,
  { weights }: SummedWeights,
  first: number,
  end: number,
): number {
  let sum = start;
  for (let i = first; i < end; i++) sum += weights[i];
  return sum;
}

/**
 * start + Σ p as FlashAttention-4 adds, at the fp32 numbers nearest to start and weights, plus the
 * differences from these: four packed accumulators of element pairs with a stride of 8, then their tree.
 * Every addition is fp32, to nearest even, and keeps subnormals.
 */
function packedRowSum(
  start: number,
  { weights, nearest }: SummedWeights,
  first: number,
  end: number,
): number {
  const { fround } = Math;
  const sums = new Float32Array(lanes);
  const nearestStart = fround(start);
  let difference = excess(start, nearestStart);
  sums[0] = nearestStart;
  for (let i = first; i < end; i++) {
    // A store to a Float32Array rounds to nearest even.
    sums[(i - first) % lanes] += nearest[i];
    if (weights[i] !== nearest[i]) difference += excess(weights[i], nearest[i]);
  }
  const pair = (lane: number): number =>
    fround(fround(sums[lane] + sums[lane + 2]) + fround(sums[lane + 4] + sums[lane + 6]));
  const sum = fround(pair(0) + pair(1));
  return difference === 0 ? sum : sum + difference;
}

/** The techniques that decide the row sums beyond those of the weights. */
export const rowSumTechniques = ['rescale', 'row-sum'] as const;

/** The row sums l of a tile over the blocks of keys. */
interface RowSums {
  /** [rows], fp64: a copy of the sums of the blocks so far. */
  readonly totals: () => Float64Array;
  readonly begin: (rows: number) => void;
  /** Takes the next block: rescales, unless it is the first, and adds its weights. */
  readonly step: (path: RunningMaximum, weights: SummedWeights) => void;
}

/** The row sums of runs that emulate the same techniques up to here. */
export function createRowSums(emulated: EmulatedTechniques, recipe: Recipe): RowSums {
  const { queries: tileQueries, keys: blockKeys } = recipe.tiling;
  const threads = emulated.has('row-sum') ? emulatedThreads(recipe.rowSum, blockKeys) : exactThread;
  const { count, columns, add, total } = threads;
  const isFused = recipe.rowSum === 'quad' && emulated.has('row-sum') && emulated.has('rescale');
  const sums = new Float64Array(tileQueries * count);
  let rows = 0;
  let isFirst = true;

  function rescaled(sum: number, row: number, { alpha, exactAlpha }: RunningMaximum): number {
    return emulated.has('rescale') ? emulatedRescale(sum, alpha[row]) : sum * exactAlpha[row];
  }

  return {
    totals: () =>
      Float64Array.from({ length: rows }, (_, row) =>
        count === 1 ? sums[row] : total(sums.subarray(row * count, (row + 1) * count)),
      ),
    begin: (rowCount) => {
      rows = rowCount;
      isFirst = true;
      sums.fill(0);
    },
    step: (path, weights) => {
      for (let row = 0; row < rows; row++)
        for (let thread = 0; thread < count; thread++) {
          const at = row * count + thread;
          const first = row * blockKeys;
          if (isFused && !isFirst)
            sums[at] = addFused(sums[at], path.alpha[row], weights, first, columns[thread]);
          else {
            const start = isFirst ? 0 : rescaled(sums[at], row, path);
            sums[at] = add(start, weights, first, first + blockKeys, thread);
          }
        }
      isFirst = false;
    },
  };
}

/** Summation by the threads of a row. */
interface RowThreads {
  readonly count: number;
  /** Columns of a block that each thread has, if it does not have them all. */
  readonly columns: readonly (readonly number[])[];
  /** start + Σ p of a thread over the weights [first, end). */
  readonly add: (
    start: number,
    weights: SummedWeights,
    first: number,
    end: number,
    thread: number,
  ) => number;
  readonly total: (sums: Float64Array) => number;
}

const exactThread: RowThreads = {
  count: 1,
  columns: [],
  add: exactRowSum,
  total: ([sum]) => sum,
};

/** start + difference + Σ p over some columns, with fp32 additions one after the other. */
function addColumns(
  start: number,
  difference: number,
  { weights, nearest }: SummedWeights,
  first: number,
  columns: readonly number[],
): number {
  let sum = start;
  let rest = difference;
  for (const column of columns) {
    const i = first + column;
    sum = Math.fround(sum + nearest[i]);
    if (weights[i] !== nearest[i]) rest += excess(weights[i], nearest[i]);
  }
  return rest === 0 ? sum : sum + rest;
}

/** The same with α times a sum as the start, fused with the addition of the first weight. */
function addFused(
  sum: number,
  alpha: number,
  weights: SummedWeights,
  first: number,
  [column, ...columns]: readonly number[],
): number {
  const nearestSum = Math.fround(sum);
  const factor = Math.fround(alpha);
  const nearestWeight = weights.nearest[first + column];
  const start = fusedMultiplyAddFloat32(nearestSum, factor, nearestWeight);
  // An fp32 sum and α leave no difference, also where α is ∞.
  const isExact = sum === nearestSum && alpha === factor;
  const ofProduct = isExact ? 0 : excess(sum * alpha, nearestSum * factor);
  const difference = ofProduct + excess(weights.weights[first + column], nearestWeight);
  return addColumns(start, difference, weights, first, columns);
}

/** The kernel's additions, at the fp32 numbers nearest to the operands, plus the differences from these. */
function emulatedThreads(name: RowSumName, blockKeys: number): RowThreads {
  if (name === 'packed') return { ...exactThread, add: packedRowSum };
  const { columnsOfThreads, total } = rowSumLaws[name];
  const columns = columnsOfThreads(blockKeys);
  return {
    count: columns.length,
    columns,
    add: (start, weights, first, _end, thread) => {
      const nearestStart = Math.fround(start);
      return addColumns(nearestStart, excess(start, nearestStart), weights, first, columns[thread]);
    },
    total: (sums) => {
      const nearest = Array.from(sums, Math.fround);
      const difference = nearest.reduce((rest, x, thread) => rest + excess(sums[thread], x), 0);
      return difference === 0 ? total(nearest) : total(nearest) + difference;
    },
  };
}
