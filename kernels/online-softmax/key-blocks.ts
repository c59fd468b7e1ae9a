import {
  broadcastStrides,
  maskTile,
  type InterruptedRow,
  type KeyRange,
  type Problem,
  type ProblemShape,
  type ScoreAddend,
  type Sequence,
} from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';

/** Sizes of the pieces of queries and keys, and the order in which the pieces are visited. */
export interface Tiling {
  /** Queries of a tile. */
  readonly queries: number;
  readonly keys: number;
  /** Keys of each part that a sequence is cut into before parts are cut into blocks; left out: it is one part. */
  readonly partKeys?: number;
  /** Tiles that one CTA works on at a time; they share the range of key blocks. */
  readonly tilesPerCta: number;
  readonly order: 'last-first' | 'first-last';
  /**
   * Blocks that a CTA visits: `diagonal`, from the first to the last in which causal and window masks leave any of its
   * queries a key; `all` of the sequence; `listed`, those of the problem's block mask, in the order of its list.
   */
  readonly visits: 'diagonal' | 'all' | 'listed';
}

/** One block of keys, as one tile of queries meets it. */
export interface KeyBlock {
  /** The first key, and the number of the block's keys that exist. */
  readonly first: number;
  readonly keys: number;
  /** The range of the block's columns within which each query of the tile sees keys. */
  readonly visible: readonly KeyRange[];
  /** The queries that do not see all columns in between. */
  readonly interrupted: readonly InterruptedRow[];
  /** Addends of scores, [queries × columns], exactly; null for none. */
  readonly addend: Float64Array | null;
}

/** Whether any query of the tile sees a key of the block. */
export function seesAKey({ visible }: KeyBlock): boolean {
  return visible.some(({ begin, end }) => begin < end);
}

/** Sets the scores of a block [rows × columns] to −∞ where a query sees no key. */
export function maskScores(
  scores: Float32Array | Float64Array,
  { visible, interrupted }: Pick<KeyBlock, 'visible' | 'interrupted'>,
  columns: number,
): void {
  visible.forEach(({ begin, end }, row) => {
    scores.fill(-Infinity, row * columns, row * columns + begin);
    scores.fill(-Infinity, row * columns + end, (row + 1) * columns);
  });
  maskInterrupted(scores, interrupted, columns);
}

/** The same between the ranges of queries that see several ranges. */
export function maskInterrupted(
  scores: Float32Array | Float64Array,
  interrupted: readonly InterruptedRow[],
  columns: number,
): void {
  for (const { row, ranges } of interrupted)
    ranges.forEach(({ end }, i) => {
      if (i + 1 === ranges.length) return;
      scores.fill(-Infinity, row * columns + end, row * columns + ranges[i + 1].begin);
    });
}

/** A tile of queries of one head. */
export interface QueryTile {
  readonly first: number;
  readonly rows: number;
  /** Its sequence: the whole problem where there are no packed sequences. */
  readonly sequence: Sequence;
}

/** The sequences of a problem; without packed ones, each head is one. */
function sequencesOf({ sequences }: Problem, { queries, keys }: ProblemShape): readonly Sequence[] {
  return sequences ?? [{ firstQuery: 0, queries, firstKey: 0, keys }];
}

/** The tiles of `tileQueries` queries of a head: those of each sequence begin anew. */
export function queryTiles(
  problem: Problem,
  shape: ProblemShape,
  tileQueries: number,
): readonly QueryTile[] {
  return sequencesOf(problem, shape).flatMap((sequence) =>
    Array.from({ length: Math.ceil(sequence.queries / tileQueries) }, (_, tile) => ({
      first: sequence.firstQuery + tile * tileQueries,
      rows: Math.min(tileQueries, sequence.queries - tile * tileQueries),
      sequence,
    })),
  );
}

/**
 * The other tile of a tile's CTA, which works on two, both counted over the tiles of all heads; null for
 * a CTA that has only one.
 */
export function otherTileOfCta(
  tile: number,
  tilesOfHead: readonly QueryTile[],
  { queries, tilesPerCta }: Tiling,
): number | null {
  const within = tile % tilesOfHead.length;
  const { first, sequence } = tilesOfHead[within];
  const inSequence = (first - sequence.firstQuery) / queries;
  const other = inSequence % tilesPerCta === 0 ? within + 1 : within - 1;
  return tilesOfHead[other]?.sequence === sequence ? tile - within + other : null;
}

/** The keys that a query of a head sees, head counted over [batch, heads]. */
export type QueryMask = (head: number, query: number) => readonly KeyRange[];

/** Data that the blocks of a tile are made from. */
export interface BlockSources {
  readonly problem: Problem;
  readonly shape: ProblemShape;
  readonly tiling: Tiling;
  /** Keys that causal and window masks leave a query; they decide the blocks: begin and end grow with the query. */
  readonly diagonal: QueryMask;
  /** The keys that a query sees in them. */
  readonly seen: QueryMask;
  readonly addend: ScoreAddend | null;
}

/** The keys of a block by its number in a sequence, counted from the sequence's first key; the last may go beyond its end. */
function keysOfBlock({ keys, partKeys }: Tiling, block: number): KeyRange {
  if (partKeys === undefined) return { begin: block * keys, end: (block + 1) * keys };
  const blocksOfPart = Math.ceil(partKeys / keys);
  const part = Math.floor(block / blocksOfPart);
  const begin = part * partKeys + (block % blocksOfPart) * keys;
  return { begin, end: Math.min(begin + keys, (part + 1) * partKeys) };
}

/** Position of a key among the blocks of a sequence: the number of its block, and a fraction. */
function blockPosition({ keys, partKeys }: Tiling, key: number): number {
  if (partKeys === undefined) return key / keys;
  const part = Math.floor(key / partKeys);
  return part * Math.ceil(partKeys / keys) + (key - part * partKeys) / keys;
}

/** The numbers of the blocks that the CTA of a tile visits, counted within the sequence, in the order visited. */
function visitedBlocks(
  { problem, shape, tiling, diagonal }: BlockSources,
  head: number,
  { first, sequence }: QueryTile,
): number[] {
  const { queries, tilesPerCta, order, visits } = tiling;
  const { firstQuery, firstKey } = sequence;
  if (visits === 'listed') return listedBlocks(problem, shape, tiling, { head, query: first });
  const between = (begin: number, end: number): number[] => {
    const low = Math.floor(blockPosition(tiling, Math.max(begin - firstKey, 0)));
    const high = Math.ceil(blockPosition(tiling, Math.max(end - firstKey, 0)));
    const blocks = Array.from({ length: Math.max(high - low, 0) }, (_, i) => low + i);
    return order === 'last-first' ? blocks.reverse() : blocks;
  };
  if (visits === 'all') return between(firstKey, firstKey + sequence.keys);
  const ctaQueries = tilesPerCta * queries;
  const ctaFirst = firstQuery + Math.floor((first - firstQuery) / ctaQueries) * ctaQueries;
  const ctaLast = Math.min(ctaFirst + ctaQueries, firstQuery + sequence.queries) - 1;
  return between(diagonal(head, ctaFirst)[0]?.begin ?? 0, diagonal(head, ctaLast).at(-1)?.end ?? 0);
}

/** @throws RequestError for a problem whose listed blocks a tiling does not fit into */
export function checkListedBlocks(
  { blockMask }: Problem,
  { queries }: ProblemShape,
  tiling: Tiling,
): void {
  if (tiling.visits !== 'listed' || blockMask === undefined) return;
  const { blockQueries, blockKeys } = blockMask;
  const ctaQueries = tiling.queries * (queries > tiling.queries ? tiling.tilesPerCta : 1);
  if (blockKeys % tiling.keys !== 0 || blockQueries % ctaQueries !== 0)
    throw new RequestError(
      `the block mask has blocks of ${blockQueries} queries and ${blockKeys} keys; this kernel takes multiples of ${ctaQueries} and ${tiling.keys}`,
    );
}

/**
 * The blocks of a block mask's list for a query, each cut into blocks of the tiling, from the last listed to the first.
 */
function listedBlocks(
  { blockMask }: Problem,
  { heads, keys }: ProblemShape,
  tiling: Tiling,
  { head, query }: { readonly head: number; readonly query: number },
): number[] {
  if (blockMask === undefined) return [];
  const { counts, indices, blockQueries, blockKeys } = blockMask;
  const factor = blockKeys / tiling.keys;
  const strides = broadcastStrides([...counts.shape, 1]);
  const capacity = indices.shape.at(-1) ?? 0;
  const row =
    Math.floor(head / heads) * strides.batch +
    (head % heads) * strides.head +
    Math.floor(query / blockQueries) * strides.query;
  const listed = indices.data.subarray(row * capacity, row * capacity + counts.data[row]);
  return Array.from(listed)
    .flatMap((block) => Array.from({ length: factor }, (_, i) => block * factor + i))
    .filter((block) => block * tiling.keys < keys)
    .reverse();
}

/** Addends of the scores of a block's rows, [rows × columns]. */
function blockAddend(
  addend: ScoreAddend,
  { head, queryTile, first }: { head: number; queryTile: QueryTile; first: number },
  columns: number,
): Float64Array {
  const added = new Float64Array(queryTile.rows * columns);
  for (let row = 0; row < queryTile.rows; row++)
    addend(head, queryTile.first + row, first, added.subarray(row * columns, (row + 1) * columns));
  return added;
}

/** The blocks of keys that a tile's CTA visits, in the order visited. Those of a sequence begin at its first key. */
export function keyBlocks(sources: BlockSources, head: number, queryTile: QueryTile): KeyBlock[] {
  const { tiling, seen, addend } = sources;
  const { keys } = tiling;
  const { sequence, rows } = queryTile;
  const ranges = Array.from({ length: rows }, (_, row) => seen(head, queryTile.first + row));
  const [low, high] = [new Int32Array(rows), new Int32Array(rows)];
  return visitedBlocks(sources, head, queryTile).map((block) => {
    const { begin, end } = keysOfBlock(tiling, block);
    const first = sequence.firstKey + begin;
    const last = sequence.firstKey + end;
    const { interrupted } = maskTile(ranges, { begin: first, end: last }, low, high);
    return {
      first,
      keys: Math.min(end, sequence.keys) - begin,
      visible: Array.from(low, (begin, row) => ({ begin, end: high[row] })),
      interrupted,
      addend: addend === null ? null : blockAddend(addend, { head, queryTile, first }, keys),
    };
  });
}
