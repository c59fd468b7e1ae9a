import type { ProblemShape, RowPlace, RowsOf } from '../../problem/index.js';
import { rowPlaces } from '../../problem/index.js';

/** Neighbouring members of an axis, the last included. */
export interface PlaceRange {
  readonly first: number;
  readonly last: number;
}

/** Some members of an axis. */
export interface PlaceAxis {
  /** The ranges in ascending order, with gaps between them. */
  readonly ranges: readonly PlaceRange[];
  /** Number of members that the axis has. */
  readonly of: number;
  /** The length of a stretch, as of a tile, where the ranges are those of each stretch of that many members; else null. */
  readonly each: number | null;
}

/** Number of rows that are meant, and of all rows of the place's sequences and heads. */
interface PlacedRows {
  readonly count: number;
  readonly of: number;
  /** Whether the rows are a sample of those that the problem has. */
  readonly sampled: boolean;
}

/**
 * The place of a fault. An axis is null where all of it is meant, or nothing is known of it: a place without
 * any axis is everywhere. The members of an axis are meant for each member of the others; where rows are not
 * so regular, `queries` is null and `rows` counts them. `describePlace` says it in words.
 */
export interface Place {
  /** Batch entries, or packed sequences. */
  readonly sequences: PlaceAxis | null;
  /** Query heads of a sequence. */
  readonly heads: PlaceAxis | null;
  /** Heads of K and V of a sequence. */
  readonly kvHeads: PlaceAxis | null;
  /** Counted within their sequence. */
  readonly queries: PlaceAxis | null;
  /** The rows among those of these sequences and heads; null where all of them are meant. */
  readonly rows: PlacedRows | null;
  /** Keys, counted within their sequence, that all these rows, and hardly any others, have their largest score at; null for no such rule. */
  readonly maxima: PlaceAxis | null;
  /** Counted within their sequence. */
  readonly keys: PlaceAxis | null;
  readonly columns: PlaceAxis | null;
}

/** The place without bounds. */
export const everywhere: Place = {
  sequences: null,
  heads: null,
  kvHeads: null,
  queries: null,
  rows: null,
  maxima: null,
  keys: null,
  columns: null,
};

/** Members of an axis in as few ranges as they make, in ascending order. */
export function rangesOf(members: Iterable<number>): PlaceRange[] {
  const ranges: { first: number; last: number }[] = [];
  for (const x of [...new Set(members)].sort((a, b) => a - b)) {
    const range = ranges.at(-1);
    if (range?.last === x - 1) range.last = x;
    else ranges.push({ first: x, last: x });
  }
  return ranges;
}

/** Lengths of a stretch that a pattern is looked for in: an instruction's, a warp's or a tile's. */
const periods = [8, 16, 32, 64, 128] as const;
/** The number of ranges from which on members are given as a pattern, where they have one, or not at all. */
const mostRanges = 4;

/** The pattern that members repeat in each stretch of one length; null where they repeat none. */
function patternOf(members: ReadonlySet<number>, of: number): PlaceAxis | null {
  for (const each of periods) {
    if (2 * each > of) break;
    const residues = new Set([...members].map((x) => x % each));
    let expected = 0;
    for (const residue of residues) expected += Math.ceil((of - residue) / each);
    if (residues.size <= each / 2 && members.size === expected)
      return { ranges: rangesOf(residues), of, each };
  }
  return null;
}

/** Members of an axis of `of`; null for all of them. */
export function axisOf(members: Iterable<number>, of: number): PlaceAxis | null {
  const set = new Set(members);
  if (set.size >= of) return null;
  const ranges = rangesOf(set);
  return (ranges.length > mostRanges ? patternOf(set, of) : null) ?? { ranges, of, each: null };
}

/** Sequences and heads of something, and for each pair of them its members. */
interface Grouped {
  readonly sequences: ReadonlySet<number>;
  readonly heads: ReadonlySet<number>;
  /** Members meant, and the number of all members, by sequence and head. */
  readonly parts: readonly { readonly meant: ReadonlySet<number>; readonly of: number }[];
}

/** A member of a head of a sequence. */
interface Member {
  readonly sequence: number;
  readonly head: number;
  readonly index: number;
}

/**
 * Members in their sequences and heads.
 * @param sizeOf the number of members of a head of a sequence
 */
function grouped(members: readonly Member[], sizeOf: (sequence: number, head: number) => number) {
  const sequences = new Set(members.map(({ sequence }) => sequence));
  const heads = new Set(members.map(({ head }) => head));
  const meant = new Map<string, Set<number>>();
  for (const { sequence, head, index } of members) {
    const key = `${sequence}:${head}`;
    const set = meant.get(key) ?? new Set();
    meant.set(key, set.add(index));
  }
  const parts = [...sequences].flatMap((sequence) =>
    [...heads].map((head) => ({
      meant: meant.get(`${sequence}:${head}`) ?? new Set<number>(),
      of: sizeOf(sequence, head),
    })),
  );
  return { sequences, heads, parts } satisfies Grouped;
}

/** The members that all parts share, as far as a part is long enough to have them; null where parts differ or are whole. */
function common({ parts }: Grouped): PlaceAxis | null {
  const all = new Set(parts.flatMap(({ meant }) => [...meant]));
  const longest = parts.reduce((most, { of }) => Math.max(most, of), 0);
  const alike = parts.every(({ meant, of }) =>
    [...all].every((index) => index >= of || meant.has(index)),
  );
  const axis = alike ? axisOf(all, longest) : null;
  return axis !== null && axis.ranges.length > mostRanges ? null : axis;
}

/** Number of members meant, and of all members. */
function countsOf({ parts }: Grouped): { readonly count: number; readonly of: number } {
  return parts.reduce(
    (sum, { meant, of }) => ({ count: sum.count + meant.size, of: sum.of + of }),
    { count: 0, of: 0 },
  );
}

/** The layout of rows and keys in a problem. */
type Layout = RowsOf & { readonly shape: ProblemShape };

/** Numbers of the sequences that have members at all. */
function filled({ sequences, shape }: Layout, of: 'queries' | 'keys'): number[] {
  const all = sequences ?? Array.from({ length: shape.batch }, () => shape);
  return [...all.keys()].filter((index) => (all[index]?.[of] ?? 0) > 0);
}

/** An axis of sequences; null where all sequences that have members are meant. */
function sequencesAxis(
  layout: Layout,
  of: 'queries' | 'keys',
  meant: ReadonlySet<number>,
): PlaceAxis | null {
  const { sequences, shape } = layout;
  if (filled(layout, of).every((index) => meant.has(index))) return null;
  return { ranges: rangesOf(meant), of: sequences?.length ?? shape.batch, each: null };
}

/**
 * The place of some rows of a problem, each flat over [batch, heads, queries], as the problem counts them:
 * all of the output's, or those of a sample.
 */
export function placeOfRows(rows: Iterable<number>, layout: Layout): Place {
  const { shape } = layout;
  const { batch, heads, queries } = shape;
  const placeOf = rowPlaces(layout, shape);
  const at = (row: number): RowPlace => placeOf(Math.floor(row / queries), row % queries);
  const sampled = layout.rows !== undefined;
  const sizes = new Map<string, number>();
  for (let row = 0; sampled && row < batch * heads * queries; row++) {
    const { sequence, head } = at(row);
    const key = `${sequence}:${head}`;
    sizes.set(key, (sizes.get(key) ?? 0) + 1);
  }
  const sizeOf = (sequence: number, head: number) =>
    sampled
      ? (sizes.get(`${sequence}:${head}`) ?? 0)
      : (layout.sequences?.[sequence]?.queries ?? queries);
  const members = [...new Set(rows)].map((row) => {
    const { sequence, head, query } = at(row);
    return { sequence, head, index: query };
  });
  const groups = grouped(members, sizeOf);
  const { count, of } = countsOf(groups);
  const isWhole = count === of;
  return {
    ...everywhere,
    sequences: sequencesAxis(layout, 'queries', groups.sequences),
    heads: axisOf(groups.heads, heads),
    // Nobody knows which rows between those of a sample err.
    queries: isWhole || sampled ? null : common(groups),
    rows: isWhole ? null : { count, of, sampled },
  };
}

/** The place of some keys of a problem, each flat over [batch, kv heads, keys]. */
export function placeOfKeys(keys: Iterable<number>, layout: Layout): Place {
  const { sequences, shape } = layout;
  const at = (flat: number): Member => {
    const head = Math.floor(flat / shape.keys);
    const key = flat % shape.keys;
    const own = { head: head % shape.kvHeads, sequence: Math.floor(head / shape.kvHeads) };
    const index =
      sequences?.findIndex((one) => key >= one.firstKey && key < one.firstKey + one.keys) ?? -1;
    const sequence = sequences?.[index];
    return sequence === undefined
      ? { ...own, index: key }
      : { ...own, sequence: index, index: key - sequence.firstKey };
  };
  const groups = grouped([...new Set(keys)].map(at), (sequence) =>
    sequences === undefined ? shape.keys : (sequences[sequence]?.keys ?? 0),
  );
  const { count, of } = countsOf(groups);
  const members = count === of ? null : common(groups);
  return {
    ...everywhere,
    sequences: sequencesAxis(layout, 'keys', groups.sequences),
    kvHeads: axisOf(groups.heads, shape.kvHeads),
    keys: members,
    rows: count === of || members !== null ? null : { count, of, sampled: false },
  };
}
