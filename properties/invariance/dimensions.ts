/** What each dimension of the surroundings changes, in the order in which they are tried; `determinism` is the first. */
export const dimensions = {
  determinism: 'the same problem again',
  batch: 'sequences of the batch, the first of which is compared',
  place: 'place of the sequence among eight',
  'neighbour-queries': 'queries of the other sequence of two',
  'neighbour-keys': 'keys of the other sequence of two, which has one query',
  queries: 'queries of the sequence itself, whose last one is compared',
  heads: 'kv heads, the first of which is compared',
  splits: 'splits of the keys',
  'page-size': 'keys of a page',
  'page-order': 'order of the pages',
} as const;

/** The name of a dimension of the surroundings. */
export type DimensionName = keyof typeof dimensions;

/** The name of every dimension, in the order in which they are tried. */
export const dimensionNames = Object.keys(dimensions) as DimensionName[];

/** Names of orders of the pages, by value; from there on they are shuffled. */
const pageOrders = ['in order', 'two swapped', 'backwards'];

/** The largest value of each dimension that is tried, unless more are asked for; those left out have values of their own. */
export const usualLimits = {
  batch: 64,
  place: 7,
  'neighbour-queries': 256,
  'neighbour-keys': 1024,
  queries: 256,
  heads: 16,
  'page-size': 256,
  'page-order': 5,
} as const satisfies Partial<Record<DimensionName, number>>;

/** The name of a dimension with a largest value that may be asked for. */
export type LimitedDimension = keyof typeof usualLimits;

/** The name of every dimension with a largest value that may be asked for. */
export const limitedDimensions = Object.keys(usualLimits) as LimitedDimension[];

/** The names of the values of a dimension from 0 to one of them; null where they are numbers. */
export function valueNames(dimension: DimensionName, last: number): readonly string[] | null {
  if (dimension !== 'page-order') return null;
  return Array.from(
    { length: last + 1 },
    (_, value) => pageOrders[value] ?? `shuffled (${value - pageOrders.length + 1})`,
  );
}
