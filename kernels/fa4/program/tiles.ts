import { visibleKeys, type KeyRange } from '../../../src/problem/index.js';
import { tileQueries } from '../thread-blocks.js';
import { scoreColumns, type ProgramPlan } from './plan.js';

/** A tile of work of a cluster: queries of one head for all stages and CTAs. */
export interface WorkTile {
  /** Index among [batch · heads]. */
  readonly head: number;
  /** Index among [batch · kv heads]. */
  readonly kvHead: number;
  readonly firstQuery: number;
  /** The first block of keys that is visited, which is the last one of the tile, and the number of blocks visited. */
  readonly lastBlock: number;
  readonly blocks: number;
}

/** Queries of a cluster's tile. */
export function clusterQueries({ stages, ctas }: ProgramPlan): number {
  return stages * ctas * tileQueries;
}

/** The first query of a CTA's tile of a stage. */
export function firstQueryOf(
  { ctas }: ProgramPlan,
  { firstQuery }: WorkTile,
  stage: number,
  cta: number,
): number {
  return firstQuery + (stage * ctas + cta) * tileQueries;
}

/**
 * The tiles of a cluster, in its order: the grid's clusters take the tiles in turn, and with a mask
 * those with the most keys come first. A tile without keys visits one block that lies outside K and
 * that it does not see. Source: StaticPersistentTileScheduler and the longest-processing-time order of
 * SingleTileLPTScheduler in tile_scheduler.py (without its grouping of heads for the L2 cache, which
 * only moves tiles among CTAs), get_n_block_min_max in block_info.py of flash_attn/cute.
 */
export function workTiles(plan: ProgramPlan, cluster: number): WorkTile[] {
  const { problem, shape, clusters } = plan;
  const { batch, heads, kvHeads, groupSize, queries } = shape;
  const size = clusterQueries(plan);
  const tilesOfHead = Math.ceil(queries / size);
  const isMasked = problem.causal || problem.window !== null;
  const tiles: WorkTile[] = [];
  for (let index = cluster; index < batch * heads * tilesOfHead; index += clusters) {
    const head = isMasked ? index % (batch * heads) : Math.floor(index / tilesOfHead);
    const place = isMasked
      ? tilesOfHead - 1 - Math.floor(index / (batch * heads))
      : index % tilesOfHead;
    const firstQuery = place * size;
    const { begin } = visibleKeys(problem, shape, firstQuery);
    const { end } = visibleKeys(problem, shape, Math.min(firstQuery + size, queries) - 1);
    const lastBlock = Math.ceil(end / scoreColumns) - 1;
    tiles.push({
      head,
      firstQuery,
      lastBlock,
      kvHead: Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize),
      blocks: Math.max(lastBlock - Math.floor(begin / scoreColumns) + 1, 1),
    });
  }
  return tiles;
}

/** The columns of a block of keys that each of the rows from `firstQuery` on sees. */
export function visibleColumns(
  { problem, shape }: ProgramPlan,
  firstQuery: number,
  rows: number,
  block: number,
): { begin: Int32Array; end: Int32Array; isMasked: boolean } {
  const begin = new Int32Array(rows);
  const end = new Int32Array(rows);
  let isMasked = false;
  for (let row = 0; row < rows; row++) {
    const range: KeyRange = visibleKeys(problem, shape, firstQuery + row);
    begin[row] = range.begin - block * scoreColumns;
    end[row] = range.end - block * scoreColumns;
    isMasked ||= begin[row] > 0 || end[row] < scoreColumns;
  }
  return { begin, end, isMasked };
}
