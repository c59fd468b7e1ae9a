import { decodeToFloat64, encodeFromFloat64, formats } from '../../../src/formats/index.js';
import { tileQueries } from '../forward-configuration.js';
import type { BlockWeights } from './block-weights.js';
import { emulatedNormalise, exactNormalise } from './normalise.js';
import { emulatedAccumulate, exactAccumulate, type BlockValues } from './output-sums.js';
import { emulatedRescale } from './rescale.js';
import { emulatedRowSum, exactRowSum } from './row-sum.js';
import type { RunningMaximum } from './running-maximum.js';
import type { EmulatedTechniques } from './techniques.js';

/** One block of keys, as all runs with the same weights meet it. */
export interface RunBlock {
  readonly path: RunningMaximum;
  /** Exact factors of a rescale, one per row. */
  readonly exactAlpha: Float64Array;
  readonly weights: BlockWeights;
  readonly values: BlockValues;
}

/** What one choice of techniques makes of a tile. */
export interface TileRun {
  readonly emulated: EmulatedTechniques;
  readonly begin: (rows: number) => void;
  readonly step: (block: RunBlock) => void;
  /** The output [rows × vDim] and the row sums [rows], both fp64. */
  readonly finish: () => { readonly out: Float64Array; readonly rowSums: Float64Array };
}

/** The state of a run over the blocks of a tile: everything after the weights. */
export function createTileRun(
  emulated: EmulatedTechniques,
  format: 'bf16' | 'fp16',
  blockKeys: number,
  { vDim, columns }: { readonly vDim: number; readonly columns: number },
): TileRun {
  const isRounded = emulated.has('p-round');
  const rescales = emulated.has('rescale');
  const sums = new Float64Array(tileQueries * columns);
  const rowSums = new Float64Array(tileQueries);
  let rows = 0;
  let isFirst = true;

  function rescaledSum(row: number, { path, exactAlpha }: RunBlock): number {
    const sum = rowSums[row];
    return rescales ? emulatedRescale(sum, path.alpha[row]) : sum * exactAlpha[row];
  }

  function rescaleOutput({ path, exactAlpha }: RunBlock): void {
    for (let row = 0; row < rows; row++) {
      if (rescales && path.multiplies[row] === 0) continue;
      const alpha = rescales ? path.alpha[row] : exactAlpha[row];
      if (alpha === 1) continue;
      for (let i = row * columns; i < (row + 1) * columns; i++)
        sums[i] = rescales ? emulatedRescale(sums[i], alpha) : sums[i] * alpha;
    }
  }

  return {
    emulated,
    begin: (count) => {
      rows = count;
      isFirst = true;
      sums.fill(0);
      rowSums.fill(0);
    },
    step: (block) => {
      const { weights, values } = block;
      for (let row = 0; row < rows; row++) {
        const [first, end] = [row * blockKeys, (row + 1) * blockKeys];
        const start = isFirst ? 0 : rescaledSum(row, block);
        rowSums[row] = emulated.has('row-sum')
          ? emulatedRowSum(start, weights, first, end)
          : exactRowSum(start, weights.weights, first, end);
      }
      if (!isFirst) rescaleOutput(block);
      const accumulate = emulated.has('pv-accumulate') ? emulatedAccumulate : exactAccumulate;
      accumulate(sums, weights, values, rows, isRounded);
      isFirst = false;
    },
    finish: () => {
      const out = new Float64Array(rows * vDim);
      const normalise = emulated.has('normalise') ? emulatedNormalise : exactNormalise;
      for (let row = 0; row < rows; row++) {
        const of = sums.subarray(row * columns, row * columns + vDim);
        normalise(of, rowSums[row]);
        out.set(of, row * vDim);
      }
      if (emulated.has('output-round'))
        decodeToFloat64(encodeFromFloat64(formats[format], out), formats[format], out);
      return { out, rowSums: rowSums.slice(0, rows) };
    },
  };
}
