import { tileQueries } from '../../fa4/configuration.js';
import { type BlockRescale, emulatedRescale } from './running-maximum.js';
import type { EmulatedTechniques } from './techniques.js';

/** The weights of a tile, and the fp32 numbers nearest to them. */
export interface SummedWeights {
  readonly weights: Float64Array;
  readonly nearest: Float32Array;
}

const lanes = 8;

/** start + Σ p over the weights [first, end), in fp64. */
export function exactRowSum(start: number, weights: Float64Array, first: number, end: number) {
  let sum = start;
  for (let i = first; i < end; i++) sum += weights[i];
  return sum;
}

/**
 * start + Σ p as the kernel adds, at the fp32 numbers nearest to start and weights, plus what these
 * differ by: four packed accumulators of element pairs with a stride of 8, then their tree. Every
 * addition is fp32, to nearest even, and keeps subnormals.
 */
export function emulatedRowSum(
  start: number,
  { weights, nearest }: SummedWeights,
  first: number,
  end: number,
): number {
  const { fround } = Math;
  const sums = new Float32Array(lanes);
  const nearestStart = fround(start);
  let difference = start === nearestStart ? 0 : start - nearestStart;
  sums[0] = nearestStart;
  for (let i = first; i < end; i++) {
    // A store to a Float32Array rounds to nearest even.
    sums[(i - first) % lanes] += nearest[i];
    if (weights[i] !== nearest[i]) difference += weights[i] - nearest[i];
  }
  const pair = (lane: number): number =>
    fround(fround(sums[lane] + sums[lane + 2]) + fround(sums[lane + 4] + sums[lane + 6]));
  const sum = fround(pair(0) + pair(1));
  return difference === 0 ? sum : sum + difference;
}

/** The techniques that decide the row sums beyond those of the weights. */
export const rowSumTechniques = ['rescale', 'row-sum'] as const;

/** The row sums l of a tile over the blocks of keys. */
export interface RowSums {
  /** [128], fp64. */
  readonly sums: Float64Array;
  readonly begin: (rows: number) => void;
  /** Takes the next block: rescales, unless it is the first, and adds its weights. */
  readonly step: (rescale: BlockRescale, weights: SummedWeights) => void;
}

/** The row sums of runs that emulate the same techniques up to here, in blocks of `blockKeys`. */
export function createRowSums(emulated: EmulatedTechniques, blockKeys: number): RowSums {
  const sums = new Float64Array(tileQueries);
  const add = emulated.has('row-sum')
    ? emulatedRowSum
    : (start: number, { weights }: SummedWeights, first: number, end: number) =>
        exactRowSum(start, weights, first, end);
  let rows = 0;
  let isFirst = true;

  function rescaled(row: number, { path, exactAlpha }: BlockRescale): number {
    return emulated.has('rescale')
      ? emulatedRescale(sums[row], path.alpha[row])
      : sums[row] * exactAlpha[row];
  }

  return {
    sums,
    begin: (count) => {
      rows = count;
      isFirst = true;
      sums.fill(0);
    },
    step: (rescale, weights) => {
      for (let row = 0; row < rows; row++) {
        const start = isFirst ? 0 : rescaled(row, rescale);
        sums[row] = add(start, weights, row * blockKeys, (row + 1) * blockKeys);
      }
      isFirst = false;
    },
  };
}
