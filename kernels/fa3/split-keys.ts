import {
  fusedMultiplyAddFloat32,
  multiplyFloat32,
  subtractFloat32,
} from '../../src/arith/index.js';
import type { ProblemShape } from '../../src/problem/index.js';
import type { Fa3Mask } from './mask.js';
import { splitBlocks, type SplitLaw, type SplitRow } from '../online-softmax/split-tile.js';
import { threadedSum } from '../online-softmax/row-sums.js';
import { exp2Hardware, log2Hardware, naturalLogOf2, reciprocals } from '../online-softmax/units.js';

/** The most splits that there is a combine kernel for. */
export const fa3MostSplits = 256;

const mostChosenSplits = 128;
const cacheBytes = 50 * 2 ** 20;
const log2OfE = Math.fround(Math.LOG2E);

/**
 * Number of splits that FlashAttention-3 takes where none are asked for: one if its tiles nearly fill the GPU or there
 * are four blocks of keys at most, else the fewest that reach 85 % of the best share of full waves. Query heads of a
 * group share tiles for this count. Sources: get_num_splits in hopper/flash_api.cpp, num_splits_heuristic in
 * hopper/heuristics.h.
 */
export function fa3ChosenSplits(
  { batch, queries, keys, qkDim, vDim, kvHeads, groupSize }: ProblemShape,
  { kind, left, right }: Fa3Mask,
  tile: { readonly queries: number; readonly keys: number },
  multiprocessors: number,
): number {
  const { fround } = Math;
  const seen =
    kind !== 'local' ? keys : Math.max(0, Math.min(keys, left + right + 1 + tile.queries));
  const blocks = Math.ceil(seen / tile.keys);
  const tilesOfHead = Math.ceil((queries * groupSize) / tile.queries);
  const tiles = batch * kvHeads * tilesOfHead;
  if (tiles >= fround(fround(0.8) * multiprocessors)) {
    const headBytes = 2 * keys * (qkDim + vDim);
    const isSplit = headBytes > cacheBytes && tilesOfHead >= 2 * multiprocessors && kind === 'none';
    return isSplit ? Math.min(Math.ceil(headBytes / cacheBytes), mostChosenSplits) : 1;
  }
  if (blocks <= 4) return 1;
  const most = Math.min(mostChosenSplits, multiprocessors, blocks);
  const efficiencies = Array.from({ length: most }, (_, i) => {
    const waves = fround((tiles * (i + 1)) / multiprocessors);
    return fround(waves / Math.ceil(waves));
  });
  const enough = 0.85 * Math.max(...efficiencies);
  return efficiencies.findIndex((efficiency) => efficiency >= enough) + 1;
}

/** expf and logf with use_fast_math. */
const exp = (x: number): number => exp2Hardware(multiplyFloat32(x, log2OfE));

/**
 * The blocks that a tile visits in parts of equally many, from the first key on, and the combine of their results: LSE = log Σ exp(lse − max)
 * + max, and outputs weighted by exp(lse − max) / Σ and added in ascending order, one multiply-add each. A row without keys gives 0
 * and −∞. Sources: get_n_block_min_max in hopper/block.h, hopper/flash_fwd_combine_kernel.h; the contractions are those of the
 * compiled kernel.
 */
export function fa3SplitLaw(splits: number, vDim: number): SplitLaw {
  // Threads that share a row of the combine kernel.
  const threads = vDim <= 64 ? 16 : 32;
  return {
    cut: (blocks) => splitBlocks(blocks, splits),
    combine: (parts: readonly SplitRow[], dim: number) => {
      const lses = parts.map(({ lse }) => lse);
      const largest = Math.max(...lses);
      const weights = lses.map((lse) =>
        exp(subtractFloat32(lse, largest === -Infinity ? 0 : largest)),
      );
      const sum = threadedSum(weights, threads);
      const lse = fusedMultiplyAddFloat32(log2Hardware(sum), naturalLogOf2, largest);
      const inverse = sum === 0 || Number.isNaN(sum) ? 0 : reciprocals['rcp.approx.ftz.f32'](sum);
      const out = new Float32Array(dim);
      parts.forEach((part, i) => {
        const weight = multiplyFloat32(weights[i], inverse);
        if (weight > 0 && part.out !== null)
          for (let c = 0; c < dim; c++)
            out[c] = fusedMultiplyAddFloat32(weight, part.out[c], out[c]);
      });
      return { out, lse };
    },
  };
}
