import type { Place, PlaceAxis } from '../rows/index.js';
import type { RowReader } from './row-reader.js';

/** Numbers of keys of a tile, the largest first. */
const tileSizes = [256, 128, 64, 32, 16] as const;
/** The fewest rows that show a tile, and the part of the rows with their maximum in it that must be meant. */
const fewestRows = 8;
const leastShare = 0.9;
/** The largest part of all rows that may have their maximum there, and the probability with which chance puts all rows there. */
const largestPart = 0.5;
const chance = 1e-9;
/** Multiply-adds that the scores of all rows may take. */
const productBudget = 2 ** 27;

/** A row of the heads and sequences of a place, and the key of its largest score, counted within its sequence. */
interface RowMaximum {
  readonly key: number;
  readonly isMeant: boolean;
}

/** The key with the largest score of a row, counted within its sequence; null for a row without keys, or whose sink is larger. */
function keyOfMaximum(reader: RowReader, row: number): number | null {
  const scores = reader.scores(row);
  let best: number | null = null;
  let most = reader.sink(row);
  for (const { begin, end } of reader.ranges(row))
    for (let key = begin; key < end; key++)
      if (scores[key] > most) [best, most] = [key, scores[key]];
  return best === null ? null : best - reader.place(row).firstKey;
}

/** The maxima of all rows of the sequences and heads that some rows are of; rows without a maximum are left out. */
function maximaBeside(reader: RowReader, rows: ReadonlySet<number>): RowMaximum[] {
  const at = (row: number) => {
    const { sequence, head } = reader.place(row);
    return { sequence, head };
  };
  const places = [...rows].map(at);
  const sequences = new Set(places.map(({ sequence }) => sequence));
  const heads = new Set(places.map(({ head }) => head));
  const { batch, heads: ofBatch, queries } = reader.shape;
  return Array.from({ length: batch * ofBatch * queries }, (_, row) => row).flatMap((row) => {
    const { sequence, head } = at(row);
    if (!sequences.has(sequence) || !heads.has(head)) return [];
    const key = keyOfMaximum(reader, row);
    if (key === null) return rows.has(row) ? [{ key: -1, isMeant: true }] : [];
    return [{ key, isMeant: rows.has(row) }];
  });
}

/**
 * The tiles of keys that have the largest score of every row that is meant, and of hardly any other row: null where there are none,
 * where half of all rows have it there, or where chance could put it there.
 */
export function tilesOfMaxima(maxima: readonly RowMaximum[], keys: number): PlaceAxis | null {
  const meant = maxima.filter(({ isMeant }) => isMeant).map(({ key }) => key);
  const first = meant.reduce((a, b) => Math.min(a, b), Infinity);
  const last = meant.reduce((a, b) => Math.max(a, b), -1);
  if (meant.length < fewestRows || first < 0) return null;
  for (const size of tileSizes) {
    const begin = Math.floor(first / size) * size;
    const end = Math.min((Math.floor(last / size) + 1) * size, keys);
    if (begin === 0 && end === keys) continue;
    const there = maxima.filter(({ key }) => key >= begin && key < end).length;
    if (meant.length < leastShare * there || there > largestPart * maxima.length) continue;
    if ((there / maxima.length) ** meant.length > chance) continue;
    return { ranges: [{ first: begin, last: end - 1 }], of: keys, each: null };
  }
  return null;
}

/**
 * A place whose rows follow no rule of heads and queries, with the keys that their largest scores lie in, where these are a rule:
 * as of a kernel that forgets something where its running maximum moves in one tile.
 * @param rows the rows of the place, flat over [batch, heads, queries]
 */
export function withMaxima(place: Place, rows: readonly number[], reader: RowReader): Place {
  const { batch, heads, queries, keys, qkDim } = reader.shape;
  if (place.rows === null || place.rows.sampled || place.queries !== null) return place;
  if (rows.length < fewestRows || batch * heads * queries * keys * qkDim > productBudget)
    return place;
  const { sequences } = reader.problem;
  const longest = sequences?.reduce((most, one) => Math.max(most, one.keys), 0) ?? keys;
  return { ...place, maxima: tilesOfMaxima(maximaBeside(reader, new Set(rows)), longest) };
}
