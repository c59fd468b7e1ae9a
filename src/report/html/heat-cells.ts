import { formatShare } from '../../words/index.js';
import { type Content, element, type Html, raw } from '../layout/index.js';
import type { HeatMap, HeatMaps, HeatOverview } from './heat-map-data.js';

/** Upper ends of the colours' ranges of shares of the bound; above 1 an element fails. */
export const levels = [0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 3, 30, Infinity] as const;

/** The id of the cells of the map with the worst element, which the page shows small beside its verdict too. */
export const worstCells = 'worst-cells';

/** The name of a head counted over [batch, heads]. */
export function headName(head: number | null, heads: number): string {
  if (head === null) return 'all heads';
  const batch = Math.floor(head / heads);
  return `${batch === 0 ? '' : `batch ${batch}, `}head ${head % heads}`;
}

/** The colour of a cell: an index into the levels, one more for special; −1 for none. */
function levelOf(share: number, special: number): number {
  if (special === 1 && !(share > 1)) return levels.length;
  return levels.findIndex((level) => share <= level);
}

/** The cells of a map, and where it ends in units of cells: the last ones may be cut off. */
interface Cells {
  readonly rowCells: number;
  readonly columnCells: number;
  readonly height: number;
  readonly width: number;
}

/** The cells of each colour as one path, in units of cells, with neighbours of a row merged. */
export function cellPaths(
  { shares, special }: Pick<HeatMap, 'shares' | 'special'>,
  { rowCells, columnCells, height, width }: Cells,
): string[] {
  const paths = Array.from({ length: levels.length + 1 }, () => '');
  for (let row = 0; row < rowCells; row++) {
    const level = (column: number) =>
      column < columnCells
        ? levelOf(shares[row * columnCells + column], special[row * columnCells + column])
        : -1;
    for (let begin = 0; begin < columnCells;) {
      const own = level(begin);
      let end = begin + 1;
      while (level(end) === own && end < columnCells) end++;
      const across = Math.min(end, width) - begin;
      if (own >= 0)
        paths[own] += `M${begin} ${row}h${across}V${Math.min(row + 1, height)}h${-across}z`;
      begin = end;
    }
  }
  return paths;
}

/** A small picture that leads to the large ones; its words are for readers who do not see it, and below it. */
function glance(
  box: readonly [width: number, height: number],
  label: string,
  ...content: Content[]
): Html {
  return element(
    'a',
    { href: '#elements', class: 'glance' },
    element(
      'svg',
      { viewBox: `0 0 ${box.join(' ')}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
      ...content,
    ),
    element('span', {}, label),
  );
}

/** Heads across and tiles of queries down, each by its largest share. */
function overviewGlance({ shares, special, tiles, count, tileQueries }: HeatOverview): Html {
  const ends = { rowCells: tiles, columnCells: count, height: tiles, width: count };
  const paths = cellPaths({ shares, special }, ends)
    .map((d, level) => (d === '' ? '' : `<path class="heat-${level}" d="${d}"/>`))
    .join('');
  const label = `${count} heads × ${tiles} tiles of ${tileQueries} queries`;
  return glance([count, tiles], label, raw(paths));
}

/**
 * The places of the errors beside the verdict: the map of the worst element's head, small, whose cells are those of the
 * large map (`heatFigure` gives them their id), and with several heads all of them by tiles of queries.
 * @param worstHead of the worst element, counted over [batch, heads]; null where there is none
 */
export function glances(maps: HeatMaps, worstHead: number | null): Html | '' {
  const { queries, columns, rowsPerCell, columnsPerCell, heads, overview } = maps;
  const map = maps.maps.find(({ head }) => head === worstHead);
  if (map === undefined) return '';
  const name = overview !== null && overview.count > 1 ? ` of ${headName(map.head, heads)}` : '';
  const label = `${queries} queries × ${columns} columns${name}; largest share of a bound: ${formatShare(map.largest)}`;
  return element(
    'div',
    { class: 'glances' },
    glance(
      [columns / columnsPerCell, queries / rowsPerCell],
      label,
      element('use', { href: `#${worstCells}` }),
    ),
    overview === null || overview.count < 2 ? '' : overviewGlance(overview),
  );
}
