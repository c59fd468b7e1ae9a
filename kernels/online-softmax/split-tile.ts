import { encode, formats } from '../../src/formats/index.js';
import { conversions } from '../../src/hardware/index.js';
import { roundingConversions, type InputPatterns, type OutFormat } from './units.js';
import type {
  ForwardCounters,
  ForwardTile,
  ForwardTileResult,
  PartialTileResult,
  TileWork,
} from './query-tiles.js';
import type { KeyBlock } from './key-blocks.js';

const { fp32 } = formats;

/** Results of one split of the keys for a row. */
export interface SplitRow {
  /** [vDim], normalised; null where the split has no block of keys and so has written nothing. */
  readonly out: Float32Array | null;
  readonly lse: number;
}

/** Split of a tile's keys, and the combination of the parts' results. */
export interface SplitLaw {
  /** Divides a tile's blocks, in the order visited, among the parts; a part may have none. */
  readonly cut: (blocks: readonly LoadedBlock[]) => readonly (readonly LoadedBlock[])[];
  /** A row's output, not yet rounded to its format, and LSE from those of the parts. */
  readonly combine: (
    parts: readonly SplitRow[],
    vDim: number,
  ) => { readonly out: Float32Array; readonly lse: number };
}

/** A block of keys with its operands. */
interface LoadedBlock {
  readonly block: KeyBlock;
  readonly keys: InputPatterns;
  readonly values: InputPatterns;
}

/**
 * Blocks, given from the last to the first, cut into splits: split s has the blocks from s·n on, n the
 * number of blocks over that of splits, rounded up; so the last splits may have none. Sources:
 * BlockInfo.get_n_block_min_max in flash_attn/cute/block_info.py, and in hopper/block.h.
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
  { cut, combine }: SplitLaw,
  outFormat: OutFormat,
  vDim: number,
): TileWork<ForwardTileResult, InputPatterns> {
  const toOut = conversions[roundingConversions[outFormat]];
  let queries: InputPatterns = new Uint16Array();
  let rows = 0;
  let logit = -Infinity;
  let loaded: LoadedBlock[] = [];

  /** Null for a split without blocks. The first has the sink. */
  function runSplit(blocks: readonly LoadedBlock[], part: number): PartialTileResult | null {
    if (blocks.length === 0) return null;
    tile.begin(queries, rows, part === 0 ? logit : -Infinity);
    for (const { block, keys, values } of blocks) tile.block(block, keys, values);
    return tile.finishPartial();
  }

  return {
    begin: (source, count, sink) => {
      queries = source;
      rows = count;
      logit = sink;
      loaded = [];
    },
    block: (block, keys, values) => void loaded.push({ block, keys, values }),
    finish: () => {
      const parts = cut(loaded).map(runSplit);
      const out = new Uint16Array(rows * vDim);
      const lse = new Float32Array(rows);
      const rescales = new Int32Array(rows);
      for (let row = 0; row < rows; row++) {
        const combined = combine(
          parts.map((part) => ({
            out: part === null ? null : part.out.subarray(row * vDim, (row + 1) * vDim),
            lse: part === null ? -Infinity : part.lse[row],
          })),
          vDim,
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
