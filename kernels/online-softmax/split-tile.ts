import { encode, formats } from '../../src/formats/index.js';
import { conversions } from '../../src/hardware/index.js';
import type { KeyBlock } from './key-blocks.js';
import type { Fa4Configuration } from '../fa4/configuration.js';
import { outConversions, type InputPatterns } from '../fa4/forward-formats.js';
import type {
  ForwardCounters,
  ForwardTile,
  ForwardTileResult,
  PartialTileResult,
} from './forward-tile.js';
import type { TileWork } from './query-tiles.js';
import { combineSplits, type CombineSteps } from '../fa4/split-combine.js';

const { fp32 } = formats;

/** A block of keys with its operands. */
interface LoadedBlock {
  readonly block: KeyBlock;
  readonly keys: InputPatterns;
  readonly values: InputPatterns;
}

/**
 * Blocks, given from the last to the first, cut into splits: split s has the blocks from s·n on, n the
 * number of blocks over that of splits, rounded up; so the last splits may have none. Source:
 * BlockInfo.get_n_block_min_max in flash_attn/cute/block_info.py.
 */
export function splitBlocks<Block>(blocks: readonly Block[], splits: number): Block[][] {
  const perSplit = Math.ceil(blocks.length / splits);
  const fromEnd = (position: number): number => Math.max(blocks.length - position, 0);
  return Array.from({ length: splits }, (_, s) =>
    blocks.slice(fromEnd((s + 1) * perSplit), fromEnd(s * perSplit)),
  );
}

function addCounters(counters: readonly ForwardCounters[]): ForwardCounters {
  const total = (name: keyof ForwardCounters): number =>
    counters.reduce((sum, one) => sum + one[name], 0);
  return {
    rowRescales: total('rowRescales'),
    rowRescalesSkipped: total('rowRescalesSkipped'),
    warpRescales: total('warpRescales'),
    warpRescalesSkipped: total('warpRescalesSkipped'),
    polynomialLanes: total('polynomialLanes'),
    hardwareLanes: total('hardwareLanes'),
    mmas: total('mmas'),
  };
}

/**
 * A tile whose keys are split: each split is computed by itself, in fp32, and their results are
 * combined and rounded to the output's format.
 *
 * @param tile computes the splits, one after another
 */
export function createSplitTile(
  tile: ForwardTile,
  { splits, outFormat }: Fa4Configuration,
  vDim: number,
  steps: CombineSteps,
): TileWork<ForwardTileResult, InputPatterns> {
  const toOut = conversions[outConversions[outFormat]];
  let queries: InputPatterns = new Uint16Array();
  let rows = 0;
  let loaded: LoadedBlock[] = [];

  /** Null for a split without blocks. */
  function runSplit(blocks: readonly LoadedBlock[]): PartialTileResult | null {
    if (blocks.length === 0) return null;
    tile.begin(queries, rows);
    for (const { block, keys, values } of blocks) tile.block(block, keys, values);
    return tile.finishPartial();
  }

  return {
    begin: (source, count) => {
      queries = source;
      rows = count;
      loaded = [];
    },
    block: (block, keys, values) => void loaded.push({ block, keys, values }),
    finish: () => {
      const parts = splitBlocks(loaded, splits).map(runSplit);
      const out = new Uint16Array(rows * vDim);
      const lse = new Float32Array(rows);
      const rescales = new Int32Array(rows);
      for (let row = 0; row < rows; row++) {
        const combined = combineSplits(
          parts.map((part) => ({
            out: part === null ? null : part.out.subarray(row * vDim, (row + 1) * vDim),
            lse: part === null ? -Infinity : part.lse[row],
          })),
          vDim,
          steps,
        );
        combined.out.forEach((x, c) => (out[row * vDim + c] = toOut.evaluate(encode(fp32, x))));
        lse[row] = combined.lse;
        for (const part of parts) rescales[row] += part?.rescales[row] ?? 0;
      }
      const computed = parts.filter((part) => part !== null);
      return { out, lse, rescales, counters: addCounters(computed.map((part) => part.counters)) };
    },
  };
}
