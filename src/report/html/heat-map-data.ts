import type { JudgedElements } from '../../audit/index.js';

/** The errors of one head, or the largest of all heads, in cells of some rows × some columns. */
export interface HeatMap {
  /** Counted over [batch, heads]; null where the cells are the largest over all heads. */
  readonly head: number | null;
  /** [rowCells × columnCells]: the largest |error| / bound of a finite element; NaN for none. */
  readonly shares: Float32Array;
  /** [rowCells × columnCells]: 1 where an element of output or oracle is NaN or infinite. */
  readonly special: Uint8Array;
  /** Largest share of all cells; NaN when nothing is finite. */
  readonly largest: number;
}

/** Heat maps of the heads that err most, in the heads' order. */
export interface HeatMaps {
  readonly queries: number;
  readonly columns: number;
  /** Heads of one batch, so that a head's number can be told as batch and head. */
  readonly heads: number;
  readonly rowsPerCell: number;
  readonly columnsPerCell: number;
  readonly rowCells: number;
  readonly columnCells: number;
  readonly maps: readonly HeatMap[];
  /** Number of heads without a map of their own, none of which has a larger share than those with one. */
  readonly leftOut: number;
  /** All heads across and tiles of queries down; null where the maps are of all heads. */
  readonly overview: HeatOverview | null;
}

/** The largest share of each head in each tile of queries: [tiles × heads], batches beside each other. */
export interface HeatOverview extends Omit<HeatMap, 'head'> {
  readonly tiles: number;
  /** Queries of a tile: 128, or more where there are many. */
  readonly tileQueries: number;
  /** Heads of all batches. */
  readonly count: number;
}

export interface HeatMapOptions {
  /** Maximum number of cells of all maps together, but at least one for each; default 32768. */
  readonly cells?: number;
  /** Maximum number of heads with a map; default 8. Zero gives one map of all heads. */
  readonly maps?: number;
}

/** Maximum number of cells along one side: no screen shows more. */
const mostAlong = 256;

/** Cell sizes, powers of two, that leave at most `cells` cells: the finer side is made coarser first. */
function cellSizes(queries: number, columns: number, cells: number) {
  let [rowsPerCell, columnsPerCell] = [1, 1];
  for (;;) {
    const along = [Math.ceil(queries / rowsPerCell), Math.ceil(columns / columnsPerCell)] as const;
    if (along[0] * along[1] <= cells && Math.max(...along) <= mostAlong)
      return { rowsPerCell, columnsPerCell, rowCells: along[0], columnCells: along[1] };
    if (along[0] >= along[1]) rowsPerCell *= 2;
    else columnsPerCell *= 2;
  }
}

/** Adds a head's elements to a map's cells, each keeping its largest share. */
function addHead(
  {
    reference,
    bounds,
    outputs: {
      out: { values: out },
    },
  }: JudgedElements,
  head: number,
  { rowsPerCell, columnsPerCell, columnCells }: ReturnType<typeof cellSizes>,
  shares: Float32Array,
  special: Uint8Array,
): void {
  const { out: exactOut } = reference.quantities;
  const { total } = bounds.quantities.out;
  const { queries, vDim } = reference.shape;
  for (let query = 0; query < queries; query++) {
    const first = (head * queries + query) * vDim;
    const cells = Math.floor(query / rowsPerCell) * columnCells;
    for (let column = 0; column < vDim; column++) {
      const error = Math.abs(out[first + column] - exactOut.values[first + column]);
      const cell = cells + Math.floor(column / columnsPerCell);
      if (!Number.isFinite(error)) {
        special[cell] = 1;
        continue;
      }
      const share = error === 0 ? 0 : error / total[first + column];
      // Not `share > shares[cell]`, which is never true for the NaN that stands for no element.
      if (!(share <= shares[cell])) shares[cell] = share;
    }
  }
}

function largestOf(shares: Float32Array): number {
  let largest = NaN;
  for (const share of shares) if (!(share <= largest) && !Number.isNaN(share)) largest = share;
  return largest;
}

/** Queries of the tiles that plots tell apart. */
export const tileQueries = 128;

/** Maximum number of tiles of queries in an overview. */
const mostTiles = 64;

/** An overview without any head yet, of rows of cells. */
function emptyOverview(queries: number, rowsPerCell: number, count: number) {
  let step = Math.max(tileQueries, rowsPerCell);
  while (queries / step > mostTiles) step *= 2;
  const tiles = Math.ceil(queries / step);
  const shares = new Float32Array(tiles * count).fill(NaN);
  return { tiles, tileQueries: step, count, shares, special: new Uint8Array(tiles * count) };
}

/** Adds the cells of a head to an overview. */
function addToOverview(
  overview: ReturnType<typeof emptyOverview>,
  head: number,
  { shares, special }: Pick<HeatMap, 'shares' | 'special'>,
  cellsPerTile: number,
): void {
  for (let tile = 0; tile < overview.tiles; tile++) {
    const at = tile * overview.count + head;
    const end = (tile + 1) * cellsPerTile;
    overview.shares[at] = largestOf(shares.subarray(tile * cellsPerTile, end));
    overview.special[at] = special.subarray(tile * cellsPerTile, end).includes(1) ? 1 : 0;
  }
}

/**
 * The share of its bound that each element uses, downsampled by maximum so that no outlier is lost, and
 * the heads left out by their largest share. It needs memory for the cells that are kept, and for those
 * of one more head at a time. Shares are rounded to fp32.
 */
export function createHeatMaps(
  judged: JudgedElements,
  { cells = 32768, maps: mostMaps = 8 }: HeatMapOptions = {},
): HeatMaps {
  const { batch, heads, queries, vDim } = judged.reference.shape;
  const count = queries === 0 || vDim === 0 ? 0 : batch * heads;
  const ofMap = Math.max(1, Math.floor(cells / Math.max(1, Math.min(count, mostMaps))));
  const sizes = cellSizes(queries, vDim, ofMap);
  const size = sizes.rowCells * sizes.columnCells;
  const empty = () => ({
    shares: new Float32Array(size).fill(NaN),
    special: new Uint8Array(size),
  });
  let kept: HeatMap[] = [];
  let pooled = empty();
  const overview = emptyOverview(queries, sizes.rowsPerCell, count);
  const cellsPerTile = (overview.tileQueries / sizes.rowsPerCell) * sizes.columnCells;
  for (let head = 0; head < count; head++) {
    const { shares, special } = mostMaps === 0 ? pooled : (pooled = empty());
    addHead(judged, head, sizes, shares, special);
    if (mostMaps === 0) continue;
    addToOverview(overview, head, { shares, special }, cellsPerTile);
    kept.push({ head, shares, special, largest: largestOf(shares) });
    if (kept.length <= mostMaps) continue;
    // NaN, for a head without a finite element, counts as the least.
    const least = kept.reduce((a, b) => ((a.largest || 0) <= (b.largest || 0) ? a : b));
    kept = kept.filter((map) => map !== least);
  }
  if (mostMaps === 0 && count > 0)
    kept = [{ head: null, ...pooled, largest: largestOf(pooled.shares) }];
  return {
    queries,
    columns: vDim,
    heads,
    ...sizes,
    maps: kept,
    leftOut: mostMaps === 0 ? 0 : count - kept.length,
    overview: mostMaps === 0 ? null : { ...overview, largest: largestOf(overview.shares) },
  };
}
