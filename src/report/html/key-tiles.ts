import type { KeyTileMap, KeyTileMaps, KeyTileRow } from '../../audit/index.js';
import { capitalized, formatNumber } from '../../words/index.js';
import { fromReported, type JudgedReport } from '../json/index.js';
import { element, join, type Html } from '../layout/index.js';
import { headName } from './heat-cells.js';

/** What the tests tell of a tile of keys for some queries, and the words of the legend. */
const kinds = {
  lost: '−1 or less: lost',
  less: 'a part is missing, or another tile is off',
  there: '0: there, within what rounding explains',
  more: 'a part is too much, or another tile is off',
  doubled: '+0.5 to +1: counts twice',
  trace: 'below a quarter: a trace, such as errors of other tiles leave',
  untold: '?: it weighs too little to tell',
  unseen: 'the queries see nothing of it, or nothing else',
} as const;
type Kind = keyof typeof kinds;

/** The part of a tile that rounding may explain where the test still tells that it is there. */
const untold = 0.5;
/**
 * The missing part of a tile that carries the weight w of its rows and is lost, 1/(1 − w), and of one that counts twice,
 * −1/(1 + w): the test takes what leaving it out does to first order. Beyond w = 3/4 the errors tell little of one tile.
 */
const whole = { lost: [0.9, 4], doubled: [-1.1, -0.45] } as const;
/** The part of the squared error that a tile must be before it is told that it is lost or doubled: other errors have traces alike. */
const leastOfError = 0.95;

/** The part of a tile below which it is a trace. */
const leastPart = 0.25;

/** A tile of keys for some queries: its kind, and the part of it that is too much. */
interface Cell {
  readonly kind: Kind;
  readonly excess: number;
}

/**
 * The tiles of a row. Weights sum to 1, so that a tile that is off leaves errors of the other sign in all others: whole tiles are
 * told of one sign, that of the larger parts.
 */
function cellsOf({ missing, explained, ofError }: KeyTileRow): Cell[] {
  const isBeyond = (t: number) => Math.abs(missing[t] ?? 0) > (explained[t] ?? Infinity);
  const isWhole = (t: number, [least, most]: readonly [number, number]) => {
    const part = missing[t] ?? 0;
    return isBeyond(t) && part >= least && part <= most && (ofError[t] ?? 0) >= leastOfError;
  };
  const largest = (range: readonly [number, number]) =>
    Math.max(0, ...missing.map((part, t) => (isWhole(t, range) ? Math.abs(part!) : 0)));
  const named = largest(whole.lost) >= largest(whole.doubled) ? 'lost' : 'doubled';
  return missing.map((part, t): Cell => {
    const slack = explained[t];
    if (part === null || slack === null) return { kind: 'unseen', excess: 0 };
    if (!isBeyond(t)) return { kind: slack > untold ? 'untold' : 'there', excess: 0 };
    if (Math.abs(part) < leastPart) return { kind: 'trace', excess: -part };
    return { kind: isWhole(t, whole[named]) ? named : part > 0 ? 'less' : 'more', excess: -part };
  });
}

/** "−1.02"; nothing where the tile is there. */
function cellText({ kind, excess }: Cell): string {
  if (kind === 'there') return '0';
  if (kind === 'untold') return '?';
  if (kind === 'unseen') return '';
  const size = Math.abs(excess);
  return `${excess < 0 ? '−' : '+'}${size >= 100 ? formatNumber(size) : size.toFixed(2)}`;
}

/** The most places that a sentence lists. */
const mostPlaces = 3;

/** "keys 128 to 255 measure as lost for queries 256 to 383", for each tile and neighbouring rows. */
function placesOf({ rows, all }: KeyTileMap, { tileKeys, keys }: KeyTileMaps): string[] {
  const kindsOf = rows.map((row) => cellsOf(row).map(({ kind }) => kind));
  return all.missing.flatMap((_, t) => {
    const places: string[] = [];
    const isEverywhere = kindsOf.every((row) => row[t] === kindsOf[0][t]);
    for (let i = 0; i < rows.length; i++) {
      const kind = kindsOf[i][t];
      if (kind !== 'lost' && kind !== 'doubled') continue;
      const first = i;
      const isNext = () => rows.at(i + 1)?.firstRow === rows[i].lastRow + 1;
      while (kindsOf.at(i + 1)?.[t] === kind && (isEverywhere || isNext())) i++;
      const queries = isEverywhere
        ? 'all queries tested'
        : `queries ${rows[first].firstRow} to ${rows[i].lastRow}`;
      const last = Math.min(keys, (t + 1) * tileKeys) - 1;
      const state = kind === 'lost' ? 'lost' : 'counted twice';
      places.push(`keys ${t * tileKeys} to ${last} measure as ${state} for ${queries}`);
    }
    return places;
  });
}

/** One sentence on a head: the tiles that are lost or doubled, or the largest part where none is. */
function sentenceOf(map: KeyTileMap, maps: KeyTileMaps): string {
  const places = placesOf(map, maps);
  const more = places.length - mostPlaces;
  if (places.length > 0)
    return `${places.slice(0, mostPlaces).join('; ')}${more > 0 ? `; ${more} more tiles are alike` : ''}.`;
  const parts = [...map.rows, map.all].flatMap(cellsOf).map(({ excess }) => Math.abs(excess));
  return `no tile measures as lost or counted twice as a whole; the largest part that is off is ${formatNumber(Math.max(...parts))} of one, which errors of another kind leave as well.`;
}

function headTable(map: KeyTileMap, { tileKeys }: KeyTileMaps, name: string): Html {
  const tiles = map.all.missing.map((_, t) => t);
  const line = (label: string, row: KeyTileRow) =>
    element(
      'tr',
      {},
      element('th', { scope: 'row' }, label),
      cellsOf(row).map((cell) =>
        element('td', { class: `number tile-${cell.kind}` }, cellText(cell)),
      ),
    );
  return element(
    'div',
    { class: 'table', role: 'group', 'aria-label': `Tiles of keys, ${name}`, tabindex: 0 },
    element(
      'table',
      { class: 'tiles' },
      element('caption', { class: 'hidden' }, `Tiles of ${tileKeys} keys of ${name}`),
      element(
        'thead',
        {},
        element(
          'tr',
          {},
          element('th', { scope: 'col' }, 'keys from'),
          tiles.map((t) => element('th', { scope: 'col', class: 'number' }, String(t * tileKeys))),
        ),
      ),
      element(
        'tbody',
        {},
        map.rows.map((row) => line(`queries ${row.firstRow} to ${row.lastRow}`, row)),
        map.rows.length < 2 ? '' : line('all together', map.all),
      ),
    ),
  );
}

function legend(maps: KeyTileMaps): Html {
  const used = new Set(
    maps.heads.flatMap(({ rows, all }) => [...rows, all].flatMap(cellsOf)).map(({ kind }) => kind),
  );
  return element(
    'ul',
    { class: 'legend', 'aria-label': 'Colours of the tiles' },
    Object.entries(kinds)
      .filter(([kind]) => used.has(kind as Kind))
      .map(([kind, words]) =>
        element('li', {}, element('span', { class: `swatch tile-${kind}` }), words),
      ),
  );
}

/** Which tiles of keys are lost or doubled for which queries; null where no tile is beyond what rounding explains. */
export function keyTilesContent({ keyTiles, problem, sample }: JudgedReport): Html | null {
  if (keyTiles === undefined) return null;
  const maps = fromReported<KeyTileMaps>(keyTiles);
  const { heads, seqlenQ: queries } = problem;
  const left = maps.failing - maps.heads.length;
  return join(
    element(
      'p',
      {},
      `The part of each tile of ${maps.tileKeys} keys that the output has too much of, measured by what its errors have in common with leaving the tile out.`,
      left > 0
        ? ` The ${maps.heads.length} heads that are worst are shown; ${left} ${left === 1 ? 'other fails' : 'others fail'} too.`
        : '',
    ),
    legend(maps),
    maps.heads.map((map) => {
      const name = headName(map.head, heads);
      const untested = sample === null ? queries - map.tested : 0;
      return element(
        'figure',
        {},
        element(
          'figcaption',
          {},
          element('h3', {}, capitalized(name)),
          element(
            'p',
            {},
            `${capitalized(sentenceOf(map, maps))}${untested > 0 ? ` Of its ${queries} queries ${map.tested} were tested.` : ''}`,
          ),
        ),
        headTable(map, maps, name),
      );
    }),
  );
}
