import { fusedMultiplyAddFloat32, subtractFloat32 } from '../../src/arith/index.js';
import type { SplitLaw, SplitRow } from '../online-softmax/split-tile.js';
import { threadedSum } from '../online-softmax/row-sums.js';
import type { CudaMath } from './cuda-math.js';

/** The most splits that there is a combine kernel for. */
export const mostSplits = 128;

/** Keys of a block of the kernel that splits keys, by head dimension. */
export function splitBlockKeys(headDim: number): number {
  if (headDim <= 64) return 256;
  return headDim <= 128 ? 128 : 64;
}

/** Queries of its tile. */
export const splitTileQueries = 64;

/**
 * Number of splits that FlashAttention-2 takes where none are asked for: one if its tiles nearly fill
 * the GPU, else the fewest that reach 85 % of the best share of full waves. Source: num_splits_heuristic
 * in csrc/flash_attn/flash_api.cpp.
 *
 * @param tiles tiles of queries over all heads
 * @param places multiprocessors times two
 * @param blocks blocks of keys
 */
export function chosenSplits(tiles: number, places: number, blocks: number): number {
  const { fround } = Math;
  if (fround(tiles) >= fround(fround(0.8) * places)) return 1;
  const most = Math.min(mostSplits, places, blocks);
  const perSplit = (splits: number): number => Math.ceil(blocks / splits);
  const efficiencies = Array.from({ length: most }, (_, i) => {
    const splits = i + 1;
    if (splits > 1 && perSplit(splits) === perSplit(splits - 1)) return 0;
    const waves = fround((tiles * splits) / places);
    return fround(waves / Math.ceil(waves));
  });
  const enough = 0.85 * Math.max(...efficiencies);
  return Math.max(
    1,
    efficiencies.findIndex((efficiency) => efficiency > 0 && efficiency >= enough) + 1,
  );
}

/** Threads of the combine kernel that share a row. */
function rowThreads(headDim: number, splits: number): number {
  const rows = headDim % 128 === 0 ? 4 : headDim % 64 === 0 ? 8 : 16;
  return Math.min(128 / rows, 2 ** Math.max(1, Math.ceil(Math.log2(splits))));
}

/**
 * The keys in parts of equally many blocks, counted over all keys, and the combine of their results:
 * LSE = log Σ exp(lse − max) + max, and outputs weighted by exp(lse − LSE) and added in ascending order,
 * one multiply-add each. A row without keys gives 0 and +∞. Source: compute_attn_1rowblock_splitkv and
 * combine_attn_seqk_parallel in csrc/flash_attn/src/flash_fwd_kernel.h.
 */
export function fa2SplitLaw(
  splits: number,
  keys: number,
  headDim: number,
  { exp, logPlus }: CudaMath,
): SplitLaw {
  const blockKeys = splitBlockKeys(headDim);
  const keysPerSplit = Math.ceil(Math.ceil(keys / blockKeys) / splits) * blockKeys;
  const threads = rowThreads(headDim, splits);

  function combine(parts: readonly SplitRow[], vDim: number) {
    const lses = parts.map(({ lse }) => lse);
    const largest = Math.max(...lses);
    const max = largest === -Infinity ? 0 : largest;
    const sum = threadedSum(
      lses.map((lse) => exp(subtractFloat32(lse, max))),
      threads,
    );
    const lse = sum === 0 || Number.isNaN(sum) ? Infinity : logPlus(sum, max);
    const out = new Float32Array(vDim);
    for (const part of parts) {
      const weight = exp(subtractFloat32(part.lse, lse));
      for (let c = 0; c < vDim; c++)
        out[c] = fusedMultiplyAddFloat32(weight, part.out === null ? 0 : part.out[c], out[c]);
    }
    return { out, lse };
  }

  return {
    cut: (blocks) =>
      Array.from({ length: splits }, (_, split) =>
        blocks.filter(({ block }) => Math.floor(block.first / keysPerSplit) === split),
      ),
    combine,
  };
}
