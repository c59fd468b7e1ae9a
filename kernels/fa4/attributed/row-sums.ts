import { tileQueries } from '../forward-configuration.js';
import { emulatedRescale, type BlockRescale } from './rescale.js';
import { emulatedRowSum, exactRowSum, type SummedWeights } from './row-sum.js';
import type { EmulatedTechniques } from './techniques.js';

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
