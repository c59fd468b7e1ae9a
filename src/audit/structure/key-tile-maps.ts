import type { RowLocator } from '../rows/index.js';
import { isBeyond } from './error-statistic.js';
import type { KeyTileGroup } from './key-tile-plan.js';

/** The tests of all tiles of keys of a group, in each of its blocks, and last in all of them together. */
export interface KeyTileShares extends KeyTileGroup {
  /** The missing part of a tile, [(blocks + 1) × tiles]; NaN where the rows see nothing of it, or nothing else. */
  readonly missing: Float64Array;
  /** The largest part that rounding explains, alike. */
  readonly explained: Float64Array;
  /** The part of the rows' squared error that this part of the tile is, alike. */
  readonly ofError: Float64Array;
}

/** Shares of a group's tiles of which nothing is known yet. */
export function emptyShares(group: KeyTileGroup): KeyTileShares {
  const numbers = () => new Float64Array((group.blocks.length + 1) * group.tiles).fill(NaN);
  return { ...group, missing: numbers(), explained: numbers(), ofError: numbers() };
}

/** What some rows of a head lack of each tile of keys. */
export interface KeyTileRow {
  readonly firstRow: number;
  readonly lastRow: number;
  /** By tile: about 1 for one that is lost, −1 for one that counts twice; null where the rows see nothing of it, or nothing else. */
  readonly missing: readonly (number | null)[];
  /** By tile: the largest part that rounding explains, alike; above 1 nothing can be told of a tile. */
  readonly explained: readonly (number | null)[];
  /** By tile: the part of the rows' squared error that the missing part is, alike. */
  readonly ofError: readonly (number | null)[];
}

/** Rows of a head by tiles of keys. */
export interface KeyTileMap {
  /** Counted over [batch, heads]. */
  readonly head: number;
  /** Number of rows that were tested. */
  readonly tested: number;
  /** The tested blocks of rows, or some neighbours together, of which the largest counts. */
  readonly rows: readonly KeyTileRow[];
  /** All tested rows together. */
  readonly all: KeyTileRow;
}

/** The maps of the heads whose tiles are most beyond what rounding explains. */
export interface KeyTileMaps {
  /** Keys of a tile; tiles are counted within each sequence. */
  readonly tileKeys: number;
  /** Keys of the longest sequence. */
  readonly keys: number;
  /** Number of heads with a tile that is beyond what rounding explains. */
  readonly failing: number;
  /** Those that are worst by far, in the order of heads. */
  readonly heads: readonly KeyTileMap[];
}

/** Heads that are kept, and rows of each. */
const [mostHeads, mostRows] = [3, 32];

/** The tests of one tile of keys: of one block, or of several, of which the largest counts. */
interface Cell {
  readonly statistic: number;
  readonly threshold: number;
  readonly ofError: number;
}

/** The share of what rounding explains that a cell uses. */
function useOf({ statistic, threshold }: Omit<Cell, 'ofError'>): number {
  return Number.isNaN(statistic) ? -1 : statistic === 0 ? 0 : Math.abs(statistic) / threshold;
}

/** A cell in four digits, which tell a reader all, unless they would change whether it fails. */
function shortened(cell: Cell): Cell {
  const short = (x: number) => Number(x.toPrecision(4));
  const [statistic, threshold] = [short(cell.statistic), short(cell.threshold)];
  const rounded = { statistic, threshold, ofError: short(cell.ofError) };
  return isBeyond(rounded) === isBeyond(cell) ? rounded : cell;
}

/** The rows of some neighbouring blocks [from, to) of a head, the largest result of each tile. */
function rowOf(
  groups: readonly KeyTileShares[],
  [from, to]: readonly [number, number],
  place: Pick<KeyTileRow, 'firstRow' | 'lastRow'>,
): KeyTileRow {
  const cells = groups.flatMap(({ tiles, missing, explained, ofError }) =>
    Array.from({ length: tiles }, (_, t) => {
      let worst: Cell = { statistic: NaN, threshold: NaN, ofError: NaN };
      for (let block = from; block < to; block++) {
        const at = block * tiles + t;
        const cell = { statistic: missing[at], threshold: explained[at], ofError: ofError[at] };
        if (useOf(cell) > useOf(worst)) worst = cell;
      }
      return Number.isNaN(worst.statistic) ? null : shortened(worst);
    }),
  );
  return {
    ...place,
    missing: cells.map((cell) => cell?.statistic ?? null),
    explained: cells.map((cell) => cell?.threshold ?? null),
    ofError: cells.map((cell) => cell?.ofError ?? null),
  };
}

/** A head's groups as its map. The first group has all its blocks: every sequence that has keys has a first tile. */
function mapOf(groups: readonly KeyTileShares[]): KeyTileMap {
  const [{ head, blocks }] = groups;
  // Groups of later tiles lack the blocks of sequences without them.
  const whole = groups.map((group) => withAllBlocks(group, blocks));
  const step = Math.ceil(blocks.length / mostRows);
  const lastRow = (at: number) => blocks[at].firstRow + blocks[at].rows - 1;
  const rows = Array.from({ length: Math.ceil(blocks.length / step) }, (_, i) => {
    const [from, to] = [i * step, Math.min((i + 1) * step, blocks.length)];
    return rowOf(whole, [from, to], { firstRow: blocks[from].firstRow, lastRow: lastRow(to - 1) });
  });
  const place = { firstRow: blocks[0].firstRow, lastRow: lastRow(blocks.length - 1) };
  const all = rowOf(whole, [blocks.length, blocks.length + 1], place);
  const tested = blocks.reduce((sum, { rows }) => sum + rows, 0);
  return { head, tested, rows, all };
}

/** A group with a place for each of these blocks, of which it has some in the same order. */
function withAllBlocks(group: KeyTileShares, blocks: KeyTileGroup['blocks']): KeyTileShares {
  if (group.blocks.length === blocks.length) return group;
  const { tiles } = group;
  const whole = emptyShares({ ...group, blocks });
  let own = 0;
  const copy = (to: number) => {
    const from = own++ * tiles;
    for (const name of ['missing', 'explained', 'ofError'] as const)
      whole[name].set(group[name].subarray(from, from + tiles), to * tiles);
  };
  blocks.forEach(({ firstRow }, at) => {
    if (group.blocks.at(own)?.firstRow === firstRow) copy(at);
  });
  copy(blocks.length);
  return whole;
}

/** Collects the tests of all tiles, group by group and head by head, and keeps the heads that are worst. */
export class KeyTileCollector {
  #groups: KeyTileShares[] = [];
  #kept: { readonly use: number; readonly map: KeyTileMap }[] = [];
  #failing = 0;
  #tileKeys = 0;
  #keys = 0;

  /** Adds a group. Those of a head follow one another. */
  add(group: KeyTileShares): void {
    if (this.#groups.at(0)?.head !== group.head) this.#finishHead();
    this.#groups.push(group);
  }

  #finishHead(): void {
    const groups = this.#groups;
    this.#groups = [];
    const use = groups.reduce(
      (most, { missing, explained }) =>
        missing.reduce(
          (max, statistic, i) => Math.max(max, useOf({ statistic, threshold: explained[i] })),
          most,
        ),
      0,
    );
    for (const { tileKeys, blocks } of groups) {
      this.#tileKeys = tileKeys;
      for (const { keys } of blocks) this.#keys = Math.max(this.#keys, keys);
    }
    if (!(use > 1)) return;
    this.#failing++;
    if (this.#kept.length === mostHeads) {
      const least = this.#kept.reduce((a, b) => (a.use <= b.use ? a : b));
      if (use <= least.use) return;
      this.#kept = this.#kept.filter((one) => one !== least);
    }
    this.#kept.push({ use, map: mapOf(groups) });
  }

  /** The maps of the worst heads once all groups are there; null where no tile is beyond what rounding explains. */
  result(): KeyTileMaps | null {
    this.#finishHead();
    if (this.#failing === 0) return null;
    const heads = this.#kept.map(({ map }) => map);
    return { tileKeys: this.#tileKeys, keys: this.#keys, failing: this.#failing, heads };
  }
}

/** Maps with the places of a sample's rows in the whole problem. */
export function locateMaps(maps: KeyTileMaps | null, { rows }: RowLocator): KeyTileMaps | null {
  if (maps === null) return null;
  const heads = maps.heads.map((map) => {
    const located = (row: KeyTileRow): KeyTileRow => {
      const { firstRow, lastRow } = row;
      const place = rows({ head: map.head, firstRow, lastRow, rows: lastRow + 1 - firstRow });
      return { ...row, firstRow: place.firstRow, lastRow: place.lastRow };
    };
    return { ...map, rows: map.rows.map(located), all: located(map.all) };
  });
  return { ...maps, heads };
}
